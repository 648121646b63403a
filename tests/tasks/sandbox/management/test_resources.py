"""What requests leave behind: pages of lists, drafts, copies, users' sessions and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

HERE = "deployments/1"
BUILD = "../../build/api/v1/deployments/1"
WORKBOOKS = f"{HERE}/workbooks"
STAGING = f"{BUILD}/branches/staging-environment"


def get(platform: Platform, path: str) -> Any:
    response = platform.call("GET", path)
    assert response.status_code == 200, response.text
    return response.json()


def listed(platform: Platform, path: str) -> list[Any]:
    return [item["id"] for item in get(platform, path)["items"]]


def test_a_list_has_pages_by_offset_and_by_cursor(platform: Platform) -> None:
    everything = listed(platform, f"{HERE}/reports")
    assert len(everything) == 7
    assert listed(platform, f"{HERE}/reports?limit=3&page=2") == everything[3:6]
    page = get(platform, "deployments?limit=1&offset=1")
    assert [one["id"] for one in page["items"]] == [2]
    assert page["pagination"] == {"total": 2, "offset": 1, "limit": 1}
    page = get(platform, f"{HERE}/reports?first=4")
    assert page["pageInfo"]["hasNextPage"] is True
    after = page["pageInfo"]["endCursor"]
    assert listed(platform, f"{HERE}/reports?first=4&after={after}") == everything[4:]


def test_a_filter_can_be_given_several_values(platform: Platform) -> None:
    assert listed(platform, "deployments?creationStep=ready&creationStep=demo") == [1, 2]
    assert listed(platform, "deployments?creationStep=demo") == []


def test_an_object_is_created_or_updated_by_its_slug_or_public_id(platform: Platform) -> None:
    for path in (f"{WORKBOOKS}/by-slug/review", f"{HERE}/reports/by-public-id/ABCDEFabcdef"):
        first = platform.call("PUT", path, json={"name": "As code", "meta": {"a": 1}}).json()
        second = platform.call("PUT", path, json={"meta": {"b": 2}}).json()
        assert first["id"] == second["id"]
        assert (second["name"], second["meta"]) == ("As code", {"b": 2})


def test_a_copy_holds_the_draft_or_what_is_published(platform: Platform) -> None:
    draft = {"dashboardDraft": {"title": "Draft", "widgets": []}}
    assert platform.call("PUT", f"{WORKBOOKS}/301/dashboard", json=draft).status_code == 200
    copied = platform.call("POST", f"{WORKBOOKS}/301/duplicate").json()
    assert (copied["name"], copied["slug"]) == ("Copy of Sales overview", None)
    assert copied["dashboardDraft"]["title"] == "Draft"
    shared = platform.call("POST", f"{WORKBOOKS}/301/duplicate", json={"shared": True}).json()
    assert shared["dashboardDraft"]["title"] == "Sales overview"
    assert shared["publishedDashboard"] is None


def test_widgets_of_a_draft_get_an_id(platform: Platform) -> None:
    place = {"x": 0, "y": 0, "w": 1, "h": 1}
    widgets = [{"type": "TEXT", "position": place}, {"id": "b", "type": "TEXT", "position": place}]
    body = {"dashboardDraft": {"title": "Löhne", "widgets": widgets}}
    saved = platform.call("PUT", f"{WORKBOOKS}/303/dashboard", json=body).json()
    assert [one["id"] for one in saved["dashboardDraft"]["widgets"]] == ["widget-1", "b"]
    assert saved["dashboardPublished"] is None
    platform.call("PUT", f"{WORKBOOKS}/303/dashboard", json={})
    assert get(platform, f"{WORKBOOKS}/303")["dashboardDraft"] == saved["dashboardDraft"]


def test_notifications_are_filtered_by_their_recipients(platform: Platform) -> None:
    path = f"{HERE}/notifications"
    tenant = {"type": "EMBED_USER", "embedTenantName": "acme-retail", "externalId": "shop-berlin"}
    for one in (tenant, {"type": "USER", "userId": 7}):
        body = {"scheduleType": "DAILY", "dashboardId": 501}
        number = platform.call("POST", path, json=body).json()["id"]
        added = platform.call("POST", f"{path}/{number}/recipients", json={"recipients": [one]})
        assert len(added.json()["createdRecipients"]) == 1
    both = "recipientEmbedTenantName=acme-retail&recipientExternalId=shop-berlin"
    assert listed(platform, f"{path}?{both}") == [1]
    assert listed(platform, f"{path}?recipientEmail=ANALYST@acme.example.com") == [2]
    assert listed(platform, f"{path}?recipientUserId=8") == []


def test_an_export_can_be_rendered_as_an_embed_user(platform: Platform) -> None:
    """The limit of running exports counts for each user for whom they are rendered."""
    platform.control.set(export_pace=60)
    body: dict[str, Any] = {"dashboardId": 501, "format": "png"}
    user = {"type": "EMBED_USER", "embedTenantName": "acme-retail", "externalId": "shop-berlin"}
    statuses = [
        platform.call("POST", f"{HERE}/dashboard-exports", json={**body, **who}).status_code
        for who in [{"renderAs": user}] * 6 + [{}]
    ]
    assert statuses == [200] * 5 + [429, 200]


def test_a_session_is_good_for_one_exchange_until_it_is_revoked(platform: Platform) -> None:
    def session() -> dict[str, Any]:
        made = platform.call("POST", "embed/generate-session", json={"deploymentId": 1})
        return {"sessionId": made.json()["sessionId"]}

    used, revoked = session(), session()
    redeem, revoke = "embed/session/token", "embed/session/revoke"
    assert [platform.call("POST", redeem, json=used).status_code for _ in "ab"] == [200, 401]
    assert [platform.call("POST", revoke, json=revoked).status_code for _ in "ab"] == [204, 204]
    assert platform.call("POST", redeem, json=revoked).status_code == 401
    unknown = {"sessionId": "f" * 32}
    assert platform.call("POST", revoke, json=unknown).status_code == 204
    changes = platform.control.state().changed("embed-sessions", "revoked")
    assert [one.id for one in changes] == [2, 2]


def test_a_branch_is_named_by_its_id_too(platform: Platform) -> None:
    dev = next(one for one in get(platform, f"{BUILD}/branches")["items"] if one["name"] == "dev")
    body = {"branchId": dev["id"], "enabled": True}
    assert platform.call("PUT", STAGING, json=body).json()["data"]["name"] == "dev"
    state = platform.control.state()
    assert [one.id for one in state.changed("staging-environments", "enabled")] == ["dev"]


def test_the_children_of_a_deleted_branch_get_its_parent(platform: Platform) -> None:
    for name, parent in (("a", "main"), ("b", "a")):
        body = {"name": name, "from": parent}
        assert (
            platform.call("POST", f"{BUILD}/branches", json=body).json()["parentBranch"] == parent
        )
    assert platform.call("DELETE", f"{BUILD}/branches?branchName=a").json() == {"success": True}
    left = {one["name"]: one["parentBranch"] for one in get(platform, f"{BUILD}/branches")["items"]}
    assert left["b"] == "main"


def test_validation_reports_why_a_branch_does_not_compile(platform: Platform) -> None:
    platform.control.add_branch("nightly", compiles=False)
    platform.control.open_branch("nightly")
    report = get(platform, f"{BUILD}/data-model/validate?branchName=nightly")
    assert (report["valid"], len(report["errors"])) == (False, 1)
    assert "orders.yml" in str(report["errors"])
    assert get(platform, f"{BUILD}/data-model/validate")["valid"] is True


def test_a_sync_that_was_cancelled_has_no_result(platform: Platform) -> None:
    platform.control.set(dbt_pace=60)
    job = platform.call("POST", f"{HERE}/dbt-sync", json={"branchName": "x"}).json()["syncJobId"]
    path = f"{HERE}/dbt-sync/{job}"
    said = [platform.call("DELETE", path).json()["message"] for _ in "ab"]
    assert [text.split(job)[1] for text in said] == [" is cancelled", " is already cancelled"]
    assert platform.call("GET", f"{path}/result").status_code == 404
    assert get(platform, f"{HERE}/dbt-sync")["items"][0]["status"] == "CANCELLED"


def test_the_jobs_can_be_reported_by_their_tokens(platform: Platform) -> None:
    platform.control.set(default_api_scopes=["meta", "data", "jobs"])
    token = platform.call("POST", f"{HERE}/token").json()["cubeApiToken"]
    url = f"{platform.sandbox.url}/{HERE}/cubejs-api/v1/pre-aggregations/jobs"
    body = {"action": "get", "tokens": ["a", "b"], "resType": "object"}
    response = platform.http.post(url, json=body, headers={"Authorization": token})
    assert {name: "status" in one for name, one in response.json().items()} == {
        "a": True,
        "b": True,
    }
