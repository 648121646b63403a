"""Every row of the service description's endpoint table, and its neighbours, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from airflow_provider_platform.client.errors import (
    PlatformProtocolError,
)
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


@pytest.fixture
def hook(platform_sandbox: Sandbox) -> PlatformHook:
    return PlatformHook()


@pytest.mark.parametrize("path", ["slash", "plain"])
@pytest.mark.parametrize("other", ["404", "405", "redirect"])
def test_embed_tenant_is_deleted_under_either_path(
    hook: PlatformHook, platform_sandbox: Sandbox, path: str, other: str
) -> None:
    end = "retail$" if path == "slash" else "retail/$"
    refused = {"method": "DELETE", "path": f"embed-tenants/acme-{end}"}
    if other != "redirect":
        platform_sandbox.control.fault("status", status=int(other), **refused)
    elif other == "redirect":
        platform_sandbox.control.fault("redirect", status=308, **refused)
    assert [tenant["name"] for tenant in hook.iterate("listEmbedTenants")] == ["acme-retail"]
    hook.delete_embed_tenant("acme-retail")
    assert list(hook.iterate("listEmbedTenants")) == []


@pytest.mark.parametrize("lists", ["legacy", "unpaged"])
def test_lists_are_read_from_tenants_of_every_release(
    hook: PlatformHook, platform_sandbox: Sandbox, lists: str
) -> None:
    expected = list(hook.list_reports())
    if lists == "legacy":
        platform_sandbox.control.set(lists=lists)
    else:
        platform_sandbox.control.fault("odd_field", path="/reports$", field="pageInfo")
    assert list(hook.list_reports()) == expected


def test_a_cursor_that_repeats_is_an_error(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=2)
    repeated = {"field": "pageInfo.endCursor", "value": "aXRlbTox", "count": None}
    platform_sandbox.control.fault("odd_field", path="/reports$", **repeated)
    with pytest.raises(PlatformProtocolError, match="cursor"):
        list(hook.list_reports())


def test_embed_session_is_created_and_gives_a_token(hook: PlatformHook) -> None:
    session = hook.generate_embed_session(
        external_id="shopper",
        embed_tenant_name="acme-retail",
        embed_tenant_profile={"displayName": "Acme Retail"},
        creator_mode=True,
        tenant_groups=["shop-berlin"],
    )
    assert isinstance(session["sessionId"], SecretStr)
    token = hook.call("postTokenBySessionId", body={"sessionId": session["sessionId"]})
    assert session["sessionId"].get_secret_value() not in str(token)
    assert isinstance(token["token"], SecretStr)
