"""A dbt sync is started once and followed to its end, with every failure in between."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    DbtSyncCancelledError,
    DbtSyncFailedError,
    OperationMissingError,
    PlatformAddressError,
    PlatformApiError,
    PlatformBadRequestError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInterruptedError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformRateLimitError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.polling import (
    NOT_FOUND_GRACE,
)
from airflow_provider_platform.resources.dbt_sync import (
    TERMINAL_STATUSES,
    DbtSyncRunKind,
    find_started,
    read_history,
    start,
)
from airflow_provider_platform.resources.run_kind import (
    SINGLE_POLL_SECONDS,
    RunEnvironment,
)
from tests.support.fakes.effects import API, api_with
from tests.support.fakes.played_tenant import (
    NO_ANSWER,
    NOON,
    NOT_FOUND,
    SYNC,
    PlayedTenant,
    at,
)

DOWN = PlatformServerError("down", status=503)
SLOW_DOWN = PlatformRateLimitError("slow down", status=429, retry_after=20.0)
EVERY_TRANSIENT = [DOWN, SLOW_DOWN, NO_ANSWER, PlatformServerError("timeout", status=408)]
BODY = {"branchName": "b"}
AN_HOUR = 3600.0
ROUNDING = 1e-3


def waiting(tenant: PlayedTenant, *, seconds: float = AN_HOUR, interval: float = 5.0) -> Any:
    env = RunEnvironment(NOON + seconds, interval)
    ids = {"deployment_id": 1, "sync_job_id": SYNC, "waits": True}
    return tenant.run(DbtSyncRunKind().follow(api_with(tenant.clock), env, ids))


def intent(ids_before: list[str] | None) -> Any:
    """The ids of a start at noon, with what the history had before."""
    return {"deployment_id": 1, "submitted_at": NOON, "ids_before": ids_before}


def under_way(*stages: tuple[float, str], **options: Any) -> PlayedTenant:
    """A tenant whose sync began at noon."""
    return PlayedTenant(stages=stages, started_at=[NOON], **options)


class TestWait:
    def test_completed_sync_returns_its_result(self) -> None:
        tenant = under_way((12.0, "QUEUED"), (30.0, "GENERATING"), (0.0, "COMPLETED"))
        outcome = waiting(tenant)
        assert (outcome.sync_job_id, outcome.result["cubeCount"]) == (SYNC, 3)
        assert [event.status for event in tenant.events] == ["QUEUED", "GENERATING", "COMPLETED"]

    def test_completed_sync_whose_result_cannot_be_read_warns(self) -> None:
        tenant = under_way((0.0, "COMPLETED"))
        tenant.faults["getDbtSyncResult"] = [PlatformPermissionError("no access", status=403)]
        assert waiting(tenant).result is None
        said = [event.text for event in tenant.events if getattr(event, "is_warning", False)]
        assert said == ["The dbt sync is complete, but the task returns no result of it: no access"]

    def test_completed_sync_without_a_result_warns(self) -> None:
        tenant = under_way((0.0, "COMPLETED"), result_after=60.0)
        assert waiting(tenant).result is None
        said = [event.text for event in tenant.events if getattr(event, "is_warning", False)]
        assert len(said) == 1
        assert "the service has none after 30 seconds" in said[0]

    def test_failed_sync_raises_the_services_message(self) -> None:
        tenant = under_way((12.0, "PARSING"), (0.0, "FAILED"), error="No manifest\nfound.")
        with pytest.raises(DbtSyncFailedError, match=r"No manifest\\nfound\. For its log"):
            waiting(tenant)

    @given(st.lists(st.text(max_size=20).filter(lambda s: s not in TERMINAL_STATUSES), max_size=8))
    def test_unknown_status_counts_as_running(self, statuses: list[str]) -> None:
        stages = [(7.0, status) for status in statuses]
        assert waiting(under_way(*stages, (0.0, "COMPLETED"))) is not None

    @pytest.mark.parametrize("stuck", ["PARSING", "RUNNING", "NOBODY_KNOWS"])
    def test_cancelled_sync_is_found_in_the_history(self, stuck: str) -> None:
        tenant = under_way((0.0, stuck), cancelled_after=100.0)
        with pytest.raises(DbtSyncCancelledError):
            waiting(tenant)
        assert tenant.now - NOON < 100.0 + 30.0 + 10.0

    def test_history_is_read_every_half_minute_while_the_status_does_not_change(self) -> None:
        tenant = under_way((0.0, "RUNNING"))
        with pytest.raises(PlatformDeadlineError):
            waiting(tenant, seconds=600.0)
        times = [0.0, *tenant.times("listDbtSyncs"), 600.0]
        gaps = [later - sooner for sooner, later in pairwise(times)]
        assert max(gaps) < 30.0 + 10.0

    def test_history_is_not_read_while_the_status_changes(self) -> None:
        stages = [(20.0, f"STAGE_{number}") for number in range(10)]
        tenant = under_way(*stages, (0.0, "COMPLETED"))
        waiting(tenant)
        assert tenant.times("listDbtSyncs") == []

    def test_failed_reads_of_the_history_do_not_end_the_wait(self) -> None:
        tenant = under_way((200.0, "RUNNING"), (0.0, "COMPLETED"))
        tenant.faults["listDbtSyncs"] = [DOWN, NO_ANSWER, PlatformProtocolError("odd")]
        assert waiting(tenant).result is not None

    def test_wait_tolerates_an_unknown_sync_right_after_the_start(self) -> None:
        tenant = under_way((0.0, "COMPLETED"))
        tenant.faults["getDbtSyncStatus"] = [NOT_FOUND] * 10
        assert waiting(tenant) is not None

    def test_status_that_stays_unknown_fails_after_the_grace_time(self) -> None:
        tenant = under_way((0.0, "RUNNING"))
        tenant.faults["getDbtSyncStatus"] = [NOT_FOUND] * 100
        with pytest.raises(PlatformNotFoundError):
            waiting(tenant)
        assert NOT_FOUND_GRACE - ROUNDING <= tenant.now - NOON < NOT_FOUND_GRACE + 10.0

    @pytest.mark.parametrize("after", [0.0, 5.0, 20.0])
    def test_wait_continues_until_a_late_result_arrives(self, after: float) -> None:
        assert waiting(under_way((0.0, "COMPLETED"), result_after=after)).result is not None

    @pytest.mark.parametrize(
        "faults", [[NOT_FOUND] * 99, [DOWN] * 99, [PlatformAddressError("HTML")]]
    )
    def test_completed_sync_without_a_result_has_succeeded(self, faults: Any) -> None:
        tenant = under_way((0.0, "COMPLETED"), faults={"getDbtSyncResult": faults})
        assert waiting(tenant).result is None

    def test_stop_of_the_task_is_not_taken_for_a_sync_without_a_result(self) -> None:
        tenant = under_way(
            (0.0, "COMPLETED"), faults={"getDbtSyncResult": [PlatformInterruptedError("stopped")]}
        )
        with pytest.raises(PlatformInterruptedError):
            waiting(tenant)

    @given(
        st.lists(st.tuples(st.floats(0.0, 90.0), st.sampled_from(["A", "B", "C"])), max_size=6),
        st.sampled_from(["COMPLETED", "FAILED"]),
        st.none() | st.floats(0.0, 300.0),
        st.lists(st.none() | st.sampled_from([*EVERY_TRANSIENT, NOT_FOUND]), max_size=40),
        st.lists(st.none() | st.sampled_from(EVERY_TRANSIENT), max_size=10),
        st.floats(1.0, 400.0),
    )
    def test_wait_returns_the_true_outcome_in_time(
        self,
        stages: list[tuple[float, str]],
        end: str,
        cancelled_after: float | None,
        faults: list[PlatformError | None],
        history_faults: list[PlatformError | None],
        seconds: float,
    ) -> None:
        tenant = under_way(*stages, (0.0, end), cancelled_after=cancelled_after)
        tenant.faults = {"getDbtSyncStatus": list(faults), "listDbtSyncs": history_faults}
        lasts = sum(stage for stage, _ in stages)
        try:
            outcome = waiting(tenant, seconds=seconds)
        except PlatformDeadlineError:
            assert tenant.now - NOON >= seconds - ROUNDING
        except DbtSyncCancelledError:
            assert cancelled_after is not None
            assert cancelled_after <= lasts
        except DbtSyncFailedError:
            assert end == "FAILED"
        except (PlatformApiError, PlatformTransportError):
            assert any(faults)
        else:
            assert (end, outcome.sync_job_id) == ("COMPLETED", SYNC)
            assert outcome.result is not None
        assert tenant.now - NOON <= seconds + 2.0
        assert tenant.times("startDbtSync") == []


class TestStart:
    def started(self, tenant: PlayedTenant, known: list[str] | None) -> Any:
        return tenant.run(start(API, BODY, intent(known)))

    @pytest.mark.parametrize("error", [NO_ANSWER, PlatformServerError("bad gateway", status=502)])
    @pytest.mark.parametrize("visible_after", [0.0, 1.5])
    def test_a_lost_answer_is_found_in_the_history(
        self, error: PlatformError, visible_after: float
    ) -> None:
        tenant = PlayedTenant(lost=True, visible_after=visible_after)
        tenant.faults["startDbtSync"] = [error]
        assert self.started(tenant, ["older"]).sync_job_id == SYNC
        assert len(tenant.started_at) == 1

    def test_a_start_that_was_not_carried_out_is_left_to_a_retry(self) -> None:
        tenant = PlayedTenant(faults={"startDbtSync": [NO_ANSWER]})
        with pytest.raises(PlatformTransportError, match="A retry starts a sync"):
            self.started(tenant, [])
        assert len(tenant.times("startDbtSync")) == 1

    @pytest.mark.parametrize(
        "error",
        [
            PlatformTransportError("no connection", processed=False),
            SLOW_DOWN,
            PlatformApiError("maintenance", status=503, retry_after=5.0),
            PlatformBadRequestError("bad", status=400),
        ],
        ids=str,
    )
    def test_refused_start_does_not_read_the_history(self, error: PlatformError) -> None:
        tenant = PlayedTenant(faults={"startDbtSync": [error]})
        with pytest.raises(type(error)):
            self.started(tenant, [])
        assert len(tenant.calls) == 1

    @pytest.mark.parametrize("known", [None, []])
    def test_lost_start_without_a_history_has_an_unknown_outcome(
        self, known: list[str] | None
    ) -> None:
        tenant = PlayedTenant(history=False, lost=True, faults={"startDbtSync": [NO_ANSWER]})
        with pytest.raises(PlatformOutcomeUnknownError, match="A sync may be running"):
            self.started(tenant, known)
        assert len(tenant.started_at) == 1

    def test_start_and_search_keep_to_the_deadline(self) -> None:
        tenant = PlayedTenant(lost=True, faults={"startDbtSync": [NO_ANSWER]})
        tenant.run(start(API, BODY, intent([]), deadline=NOON + 2))
        assert tenant.deadlines == [NOON + 2, NOON + 2]

    @pytest.mark.parametrize("branch", [{}, [], True, 7], ids=repr)
    def test_started_sync_is_found_although_its_other_fields_are_unusual(self, branch: Any) -> None:
        odd = {"syncJobId": "new", "branchName": branch, "workflowId": branch}
        odd["startedAt"] = at(NOON + 1)
        nameless = {"syncJobId": "", "status": "RUNNING"}
        tenant = PlayedTenant(others=[nameless, odd])
        found = tenant.run(find_started(API, {}, intent([])))
        assert found is not None
        assert found.sync_job_id == "new"

    def test_several_possible_syncs_are_named_in_the_error(self) -> None:
        other = {"syncJobId": "other", "status": "RUNNING", "branchName": "b"}
        other["startedAt"] = at(NOON + 60)
        tenant = PlayedTenant(lost=True, others=[other], faults={"startDbtSync": [NO_ANSWER]})
        with pytest.raises(PlatformOutcomeUnknownError, match=r"sync-1, other"):
            self.started(tenant, [])

    @pytest.mark.parametrize(
        "other",
        [
            {"syncJobId": "older", "branchName": "b"},
            {"syncJobId": "new", "branchName": "another"},
            {"syncJobId": "new", "branchName": "b", "trigger": "webhook"},
            {"syncJobId": "new", "branchName": "b", "source": "manifest"},
        ],
        ids=["known", "another branch", "a push", "another source"],
    )
    def test_sync_of_another_client_is_not_found_as_ours(self, other: dict[str, Any]) -> None:
        tenant = PlayedTenant(others=[{**other, "status": "RUNNING", "startedAt": at(NOON)}])
        assert tenant.run(find_started(API, BODY, intent(["older"]))) is None

    @pytest.mark.parametrize(
        ("body", "odd"),
        [
            ({}, {"startedAt": at(NOON + 600)}),
            ({}, {"startedAt": at(NOON - 600)}),
            ({}, {"startedAt": None}),
            ({}, {"startedAt": "today"}),
            ({}, {"trigger": "manual"}),
            ({"source": "manifest", "manifest": {}}, {"source": None}),
        ],
        ids=str,
    )
    def test_outcome_is_unknown_if_the_found_sync_may_belong_to_another_client(
        self, body: dict[str, Any], odd: dict[str, Any]
    ) -> None:
        row = {"syncJobId": "new", "startedAt": at(NOON + 5), "trigger": "api", **odd}
        wanted = DbtSyncRunKind(**body).body
        for page in ([row], [{"branchName": "no id"}, {"syncJobId": "known"}]):
            tenant = PlayedTenant(others=page)
            with pytest.raises(
                PlatformOutcomeUnknownError, match="does not show whether this task"
            ):
                tenant.run(find_started(API, wanted, intent(["known"])))

    @pytest.mark.parametrize(
        ("others", "error", "message"),
        [
            (1, PlatformTransportError, "A retry starts a sync"),
            # A new entry that cannot be read may have pushed an old one off the page.
            (49, PlatformOutcomeUnknownError, "some new entries"),
        ],
    )
    def test_history_with_an_old_unreadable_entry_shows_that_nothing_was_started(
        self, others: int, error: type[Exception], message: str
    ) -> None:
        known = [{"syncJobId": f"known-{number}"} for number in range(others)]
        rows = [{"branchName": "no id"}, *known]
        tenant = PlayedTenant(others=rows, faults={"startDbtSync": [NO_ANSWER]})
        config = PlatformConfig.build(host="https://acme.example.com/api", management_token="t")
        api, env = api_with(tenant.clock, config), RunEnvironment(NOON + AN_HOUR)
        kind = DbtSyncRunKind(deployment_id=1)
        with pytest.raises(error, match=message):
            tenant.run(kind.submit(api, env, None, until_end=False))

    def test_sync_that_started_nearest_to_the_submission_is_found(self) -> None:
        near = {"syncJobId": "near", "startedAt": at(NOON + 5), "source": "git"}
        late = {"syncJobId": "late", "startedAt": at(NOON + 600), "source": "git"}
        tenant = PlayedTenant(others=[late, near])
        found = tenant.run(find_started(API, {}, intent([])))
        assert found is not None
        assert found.sync_job_id == "near"


class TestPollPastDeadline:
    """A retry begins after the deadline of the sync, and polls it once."""

    @staticmethod
    def polled(tenant: PlayedTenant) -> Any:
        env = RunEnvironment(NOON - 1.0)
        ids = {"deployment_id": 1, "sync_job_id": SYNC, "waits": True, "branch_name": "b"}
        return tenant.run(DbtSyncRunKind().poll_past_deadline(api_with(tenant.clock), env, ids))

    def test_running_sync_is_polled_once(self) -> None:
        tenant = under_way((0.0, "RUNNING"))
        assert self.polled(tenant) is None
        assert len(tenant.times("getDbtSyncStatus")) == 1

    @pytest.mark.parametrize("failures", [1, 3])
    @pytest.mark.parametrize("ended", [True, False])
    def test_short_outage_is_tolerated(self, failures: int, *, ended: bool) -> None:
        faults: dict[str, Any] = {
            name: [DOWN] * failures for name in ("getDbtSyncStatus", "listDbtSyncs")
        }
        tenant = under_way((0.0, "COMPLETED" if ended else "RUNNING"), faults=faults)
        assert (self.polled(tenant) is not None) is ended

    @pytest.mark.parametrize("error", [*EVERY_TRANSIENT, NOT_FOUND], ids=str)
    def test_long_outage_raises_its_error(self, error: PlatformError) -> None:
        faults: dict[str, Any] = {
            name: [error] * 9 for name in ("getDbtSyncStatus", "listDbtSyncs")
        }
        tenant = under_way((0.0, "RUNNING"), faults=faults)
        with pytest.raises(type(error)):
            self.polled(tenant)
        assert SINGLE_POLL_SECONDS <= tenant.now - NOON < SINGLE_POLL_SECONDS + 1.0


class TestHistory:
    @pytest.mark.parametrize(
        "error",
        [
            NOT_FOUND,
            PlatformPermissionError("no", status=403),
            PlatformBadRequestError("method", status=405),
            PlatformAddressError("HTML", is_html=True),
        ],
        ids=["404", "403", "405", "HTML"],
    )
    def test_history_that_the_tenant_does_not_offer_is_named(self, error: PlatformError) -> None:
        with pytest.raises(OperationMissingError, match="history and the status of dbt syncs"):
            PlayedTenant(faults={"listDbtSyncs": [error]}).run(read_history(API, 1))

    @pytest.mark.parametrize(
        "error",
        [*EVERY_TRANSIENT, PlatformProtocolError("odd"), PlatformAddressError("a redirect")],
        ids=str,
    )
    def test_failed_read_of_the_history_raises_its_error(self, error: PlatformError) -> None:
        with pytest.raises(type(error)):
            PlayedTenant(faults={"listDbtSyncs": [error]}).run(read_history(API, 1))
