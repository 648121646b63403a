"""The hook's methods for the whole management API."""

from __future__ import annotations

from airflow_provider_platform.hooks._account import AccountMethods
from airflow_provider_platform.hooks._data_model import DataModelMethods
from airflow_provider_platform.hooks._dbt_sync import DbtSyncMethods
from airflow_provider_platform.hooks._deployments import DeploymentMethods
from airflow_provider_platform.hooks._embed import EmbedMethods
from airflow_provider_platform.hooks._embed_tenants import EmbedTenantMethods
from airflow_provider_platform.hooks._exports import ExportMethods
from airflow_provider_platform.hooks._notifications import NotificationMethods
from airflow_provider_platform.hooks._reports import ReportMethods
from airflow_provider_platform.hooks._workbooks import WorkbookMethods
from airflow_provider_platform.hooks._workspace import WorkspaceMethods


class ManagementApi(
    AccountMethods,
    DataModelMethods,
    DbtSyncMethods,
    DeploymentMethods,
    EmbedMethods,
    EmbedTenantMethods,
    ExportMethods,
    NotificationMethods,
    ReportMethods,
    WorkbookMethods,
    WorkspaceMethods,
):
    """Typed methods for every described operation; `run` takes the rest."""
