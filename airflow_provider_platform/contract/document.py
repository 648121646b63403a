"""Reads an OpenAPI document: a YAML or JSON file, or the one that a tenant serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped,unused-ignore]

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.http.client import PlatformClient
from airflow_provider_platform.client.management.openapi import get_specification


class NotADocumentError(Exception):
    """What was given is not an OpenAPI document."""


def read_document(source: str, *, token: str | None = None) -> dict[str, Any]:
    """The document of a file, or of the tenant at a management address (needs its token).

    Raises NotADocumentError, and PlatformError where the tenant does not answer.
    """
    if "://" in source:
        with PlatformClient(PlatformConfig.build(host=source, management_token=token)) as client:
            document: Any = client.run(get_specification())
    else:
        try:
            document = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
        except OSError as error:
            raise NotADocumentError(f"{source} cannot be read: {error.strerror}.") from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise NotADocumentError(f"{source} is neither YAML nor JSON.") from None
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        raise NotADocumentError(f"{source} is not an OpenAPI document: it has no paths.")
    return document
