"""Every row of the service description's endpoint table, and its neighbours, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


@pytest.fixture
def hook(platform_sandbox: Sandbox) -> PlatformHook:
    return PlatformHook()


@pytest.mark.parametrize("path", ["slash", "plain"])
@pytest.mark.parametrize("other", ["404", "redirect"])
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
