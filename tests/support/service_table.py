"""The service description's tables as data: what every tenant has, from its first release on.

Paths are relative to the management address. A method or path that the description does not show
is None and comes from the later OpenAPI document.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One row of the endpoint table, and the hook method that serves it."""

    hook_method: str
    method: str
    path: str
    query: frozenset[str] = frozenset()
    body: frozenset[str] = frozenset()
    optional_body: frozenset[str] = frozenset()
    answer: frozenset[str] = frozenset()
    shown: bool = True
    """Whether the description shows method and path."""
    values: dict[str, frozenset[str]] = field(default_factory=dict)


PAGE = frozenset({"items", "pageInfo", "data", "count"})
DEPLOYMENT = "/v1/deployments/{deploymentId}"

ENDPOINTS = [
    Row("list_user_oauth_tokens", "GET", "/v1/user-oauth-tokens"),
    Row(
        "start_dbt_sync",
        "POST",
        f"{DEPLOYMENT}/dbt-sync",
        optional_body=frozenset({"branchName"}),
        answer=frozenset({"branchName", "syncJobId", "workflowId"}),
    ),
    Row(
        "connect_report",
        "PUT",
        f"{DEPLOYMENT}/reports/{{reportId}}/connect-workbook",
        body=frozenset({"externalWorkbookId", "resultLocation"}),
        optional_body=frozenset({"endResultCell"}),
        answer=frozenset({"canEdit", "canManage", "externalWorkbookPlacements"}),
    ),
    Row(
        "attach_ai_widget_thread",
        "POST",
        f"{DEPLOYMENT}/workbooks/{{workbookId}}/dashboard/ai-widget-thread",
        body=frozenset({"threadId", "widgetId"}),
        optional_body=frozenset({"checksum"}),
        answer=frozenset({"restrictDataDownload", "useBoardDashboards", "fromSharedWorkspace"}),
    ),
    Row("delete_embed_tenant", "DELETE", "/v1/embed-tenants/{embedTenantName}/"),
    Row(
        "get_app_config",
        "GET",
        "/v1/app-config",
        answer=frozenset({"appTheme", "applyThemeGlobally", "creatorMode", "embedding"}),
    ),
    Row(
        "list_reports",
        "GET",
        f"{DEPLOYMENT}/reports",
        query=frozenset({"first", "after", "sortBy", "search", "folderId", "externalWorkbookId"}),
        answer=PAGE,
        values={"sortBy": frozenset({"createdAt", "updatedAt", "lastViewedAt", "name"})},
    ),
    Row(
        "list_folders",
        "GET",
        f"{DEPLOYMENT}/folders",
        query=frozenset({"first", "after"}),
        answer=PAGE,
    ),
    Row(
        "list_notifications",
        "GET",
        f"{DEPLOYMENT}/notifications",
        query=frozenset(
            {
                "dashboardPublicId",
                "recipientUserId",
                "recipientEmail",
                "recipientEmbedTenantName",
                "recipientExternalId",
            }
        ),
    ),
    Row(
        "create_notification",
        "POST",
        f"{DEPLOYMENT}/notifications",
        optional_body=frozenset({"dashboardId", "dashboardPublicId", "filters", "timeGrains"}),
        answer=frozenset({"filters", "timeGrains"}),
        shown=False,
    ),
    Row(
        "update_notification",
        "PUT",
        f"{DEPLOYMENT}/notifications/{{id}}",
        optional_body=frozenset({"filters", "timeGrains"}),
        answer=frozenset({"filters", "timeGrains"}),
        shown=False,
    ),
    Row(
        "duplicate_workbook",
        "POST",
        f"{DEPLOYMENT}/workbooks/{{workbookId}}/duplicate",
        optional_body=frozenset({"shared"}),
        answer=frozenset({"slug", "user"}),
    ),
    Row(
        "update_workbook",
        "PUT",
        f"{DEPLOYMENT}/workbooks/{{workbookId}}",
        optional_body=frozenset({"slug", "slugTakeover"}),
        shown=False,
    ),
    Row(
        "generate_embed_session",
        "POST",
        "/v1/embed/generate-session",
        optional_body=frozenset({"tenantGroups", "tenantGroupDefinitions", "embedTenantProfile"}),
        shown=False,
    ),
]

REMOVED_PATHS = [
    "/v1/embed-tenants/{embedTenantName}/user-attributes",
    "/v1/embed-tenants/{embedTenantName}/user-attributes/{id}",
]
REMOVED_SESSION_FIELD = "ephemeralTtlSeconds"

USER_OAUTH_TOKEN_REQUIRED = frozenset(
    {"id", "userId", "integrationId", "status", "createdAt", "updatedAt"}
)
USER_OAUTH_TOKEN_OPTIONAL = frozenset(
    {"accessTokenExpiresAt", "refreshTokenExpiresAt", "lastError"}
)

RESOURCES: dict[str, frozenset[str]] = {
    "DbtSyncResponse": frozenset({"branchName", "syncJobId", "workflowId"}),
    "Report": frozenset({"canEdit", "canManage", "externalWorkbookPlacements"}),
    "ReportPlacement": frozenset({"workbookId", "resultLocation", "endResultCell"}),
    "ReportSnapshot": frozenset({"fillMissingRows"}),
    "FillMissingRows": frozenset({"member", "excludedDimensions"}),
    "CreatorMode": frozenset({"showGeneratedSql", "showSemanticSql", "localizedTitles"}),
    "LocalizedValue": frozenset({"locale", "value"}),
    "Dashboard": frozenset({"restrictDataDownload", "useBoardDashboards", "fromSharedWorkspace"}),
    "Workbook": frozenset({"slug", "user"}),
    "AppConfigResponse": frozenset({"appTheme", "applyThemeGlobally", "creatorMode", "embedding"}),
    "AppTheme": frozenset(),
    "EmbedSettings": frozenset({"locale"}),
    "EmbedTenantProfile": frozenset({"displayName"}),
    "NotificationDto": frozenset({"filters", "timeGrains"}),
    "NotificationRecipient": frozenset({"username"}),
    "DashboardFilter": frozenset(),
    "DashboardTimeGrain": frozenset(),
}
"""Resources that the change history names and operations use, by the names of their schemas, and
the fields named."""

TAG_GROUPS = [
    "Agents",
    "Deployments",
    "Environments",
    "Folders",
    "Reports",
    "Workbooks",
    "Notifications",
    "Workspace",
    "User Attributes",
    "App Theme",
    "Dashboard Exports",
    "Data Model",
    "Embed",
    "Embed Tenants",
    "Dbt Sync",
    "Env Variables",
    "Evaluations",
    "External Documents",
    "OAuth Integrations",
    "OIDC Token Configs",
    "Regions",
    "Report Deliveries",
    "Scheduled Tasks",
    "Tenant Settings",
    "Usage Analytics",
    "User Attribute Values",
    "User OAuth Tokens",
    "Users Admin",
]
