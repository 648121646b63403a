"""A branch is merged once, even if the response is lost, and the build of the merge is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    BranchNotFoundError,
    BranchNotMergedError,
    MergedBuildFailedError,
    OperationMissingError,
    PlatformConflictError,
    PlatformDeadlineError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformPermissionError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.branches import BranchResponse
from airflow_provider_platform.resources.builds import (
    ACTIVATION_GRACE,
    Build,
    BuildSeen,
)
from airflow_provider_platform.resources.merges import (
    MADE,
    NOT_MADE,
    UNSURE,
    Merge,
    MergeRunKind,
    judge_lost,
    plan_merge,
    send_merge,
)
from airflow_provider_platform.resources.run_kind import RunAccepted, RunEnvironment
from airflow_provider_platform.resources.run_log import LogLine
from tests.support.fakes.effects import API, api_with
from tests.support.fakes.played_branches import MISSING, PlayedBranches
from tests.support.fakes.played_tenant import NO_ANSWER, NOON

BRANCH = "dbt-sync/main-1"
DOWN = PlatformServerError("down", status=503)
REFUSED = PlatformTransportError("no connection", processed=False)


def tenant(**options: Any) -> PlayedBranches:
    return PlayedBranches(**{"commits": {"main": "m1", BRANCH: "b1"}, **options})


def planned(played: PlayedBranches, into: str = "default", **options: Any) -> Merge:
    return played.run(plan_merge(API, 1, BRANCH, into, **options))


def sent(played: PlayedBranches, merge: Merge, **options: Any) -> Merge:
    arguments = {"message": "Nightly", "delete_branch": False, **options}
    return played.run(send_merge(api_with(played.clock), merge, **arguments))


def bodies(played: PlayedBranches) -> list[Any]:
    """The bodies of the merges that were sent."""
    return [one.body for one in played.operations if one.operation_id.startswith("merge")]


class TestPlan:
    def test_plan_names_target_and_commits(self) -> None:
        merge = planned(tenant())
        assert (merge.target, merge.production) == ("main", True)
        assert (merge.source_hash, merge.target_hash, merge.merged) == ("b1", "m1", None)

    def test_parent_is_the_target_if_asked_for(self) -> None:
        played = tenant(branches={BRANCH: "staging", "staging": "main"})
        merge = planned(played, "parent")
        assert (merge.target, merge.production) == ("staging", False)

    def test_deploy_mode_cli_refuses_a_merge_into_production(self) -> None:
        played = tenant(settings={"deployMode": "cli"})
        with pytest.raises(BranchNotMergedError, match=r"deploy mode cli.*does not build"):
            planned(played)
        assert not bodies(played)

    def test_missing_branch_is_named(self) -> None:
        with pytest.raises(BranchNotFoundError, match=f"no branch of this name.*{BRANCH}"):
            planned(tenant(branches={"other": "main"}))

    def test_branch_with_new_commits_since_its_check_is_not_merged(self) -> None:
        with pytest.raises(BranchNotMergedError, match=r"commit b0 was checked.*commit b1"):
            planned(tenant(), checked_hash="b0")
        assert planned(tenant(), checked_hash="b1").source_hash == "b1"

    def test_branch_whose_commit_the_service_does_not_name_is_merged_only_unchecked(self) -> None:
        played = tenant(commits={"main": "m1"})
        assert planned(played).source_hash is None
        with pytest.raises(BranchNotMergedError, match="service does not name the branch's commit"):
            planned(tenant(commits={"main": "m1"}), checked_hash="b1")

    def test_production_branch_is_not_merged_into_itself(self) -> None:
        with pytest.raises(BranchNotMergedError, match="this is the production branch"):
            tenant().run(plan_merge(API, 1, "main", "default"))

    @pytest.mark.parametrize("missing", MISSING)
    def test_tenant_without_settings_merges_nothing(self, missing: str) -> None:
        with pytest.raises(OperationMissingError, match="Nothing was merged: this tenant"):
            planned(tenant(settings=None, missing=missing))

    def test_unknown_deployment_is_not_reported_as_a_missing_operation(self) -> None:
        with pytest.raises(PlatformNotFoundError):
            planned(tenant(settings=None, deployment=False))


class TestSend:
    @pytest.mark.parametrize("delete", [True, False])
    def test_every_flag_is_sent(self, delete: bool) -> None:
        played = tenant(branches={BRANCH: "staging", "staging": "main"})
        played.commits["staging"] = "s1"
        sent(played, planned(played), delete_branch=delete)
        played.branches.setdefault(BRANCH, "staging")
        sent(played, planned(played, "parent"), delete_branch=delete)
        assert bodies(played) == [
            {"branchName": BRANCH, "message": "Nightly", "removeBranchAfterMerge": delete},
            {
                "branchName": BRANCH,
                "message": "Nightly",
                "deleteBranch": delete,
                "squashCommits": False,
                "switchToParentBranch": False,
            },
        ]

    def test_answer_that_nothing_was_merged_is_a_failure(self) -> None:
        """Somebody else merged the branch between our look and our call."""
        played = tenant()
        merge = planned(played)
        sent(played, merge)
        with pytest.raises(BranchNotMergedError, match=r"merged nothing.*mark this task"):
            sent(played, merge)

    def test_merge_of_nothing_succeeds_if_production_has_the_files_of_the_branch(self) -> None:
        """As a retry before Airflow 3.3 finds it, which has no record of its merge."""
        played = tenant()
        sent(played, planned(played))
        played.files = {"main": "f1", BRANCH: "f1"}
        merge = sent(played, planned(played))
        assert (merge.merged, merge.target_hash) == (False, "m1+b1")

    def test_merge_of_nothing_succeeds_if_production_is_at_the_commit(self) -> None:
        played = tenant(fast_forward=True)
        merge = planned(played)
        sent(played, merge)  # by somebody else
        assert sent(played, merge).merged is False

    def test_conflict_names_both_branches_and_the_next_step(self) -> None:
        error = PlatformConflictError("409", status=409, service_message="orders.yml differs")
        played = tenant(faults={"mergeToDefaultBranch": [error]})
        with pytest.raises(
            BranchNotMergedError, match=r"conflicts with main.*orders\.yml differs\. Resolve"
        ):
            sent(played, planned(played))

    def test_branch_that_is_deleted_in_the_middle_is_named(self) -> None:
        played = tenant()
        merge = planned(played)
        del played.branches[BRANCH]
        with pytest.raises(BranchNotFoundError, match="deleted the branch a moment ago"):
            sent(played, merge)

    def test_refusal_names_the_setting_that_forbids_merges(self) -> None:
        played = tenant(
            settings={"deployBranchMergeAllowed": False},
            faults={"mergeToDefaultBranch": [PlatformPermissionError("refused.", status=403)]},
        )
        with pytest.raises(PlatformPermissionError, match="deployBranchMergeAllowed") as raised:
            sent(played, planned(played))
        assert raised.value.status == 403


class TestLostAnswer:
    @pytest.mark.parametrize("fast_forward", [True, False])
    @pytest.mark.parametrize("error", [NO_ANSWER, DOWN])
    def test_merge_that_was_made_is_found_and_made_once(
        self, error: PlatformError, fast_forward: bool
    ) -> None:
        played = tenant(
            fast_forward=fast_forward,
            lost=True,
            faults={"mergeToDefaultBranch": [error]},
            files={"main": "f1", BRANCH: "f1"},
        )
        merge = sent(played, planned(played))
        assert (merge.merged, len(played.merges)) == (True, 1)
        # The merge is sent again only if the commits do not decide.
        assert len(bodies(played)) == (1 if fast_forward else 2)

    @pytest.mark.parametrize("answer", [{}, {"merged": None}, {"branchDeleted": False}])
    def test_response_that_does_not_say_whether_it_merged_counts_as_lost(
        self, answer: dict[str, Any]
    ) -> None:
        class Silent(PlayedBranches):
            def _merge(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
                super()._merge(name, body)
                return answer

        played = Silent(commits={"main": "m1", BRANCH: "b1"}, fast_forward=True)
        merge = sent(played, planned(played))
        assert (merge.merged, len(bodies(played))) == (True, 1)

    @pytest.mark.parametrize("files", [{}, {"main": "f2", BRANCH: "f1"}])
    @pytest.mark.parametrize("made", [True, False])
    def test_merge_of_nothing_after_a_lost_answer_is_unknown_without_equal_files(
        self, made: bool, files: dict[str, str]
    ) -> None:
        """A colleague's commit has moved production: the task does not take it for its merge."""
        played = tenant(lost=made, refuses=not made, faults={"mergeToDefaultBranch": [DOWN]})
        merge = planned(played)
        played.files = files
        played.commits["main"] = "theirs"
        with pytest.raises(PlatformOutcomeUnknownError, match=r"does not say whether main has"):
            sent(played, merge)

    def test_files_of_production_are_awaited(self) -> None:
        """The build status still names the commit before the merge."""
        played = tenant(lost=True, faults={"mergeToDefaultBranch": [DOWN]})
        merge = planned(played)
        old = {"status": "built", "lastHash": "m1", "filesHash": "f0"}
        branch = {"status": "built", "lastHash": "b1", "filesHash": "f1"}
        new = {"status": "building", "lastHash": "m1+b1", "filesHash": "f1"}
        played.builds = [branch, old, branch, new]
        assert sent(played, merge).merged is True

    @pytest.mark.parametrize("now_at", ["theirs", "m1+b1"])
    def test_deleted_branch_does_not_show_that_it_was_merged(self, now_at: str) -> None:
        played = tenant(faults={"mergeToDefaultBranch": [NO_ANSWER]})
        merge = planned(played)
        played.commits["main"] = now_at
        del played.branches[BRANCH]
        with pytest.raises(PlatformOutcomeUnknownError, match="The branch was deleted"):
            sent(played, merge, delete_branch=True)

    def test_merge_stays_in_doubt_if_the_commits_cannot_be_read(self) -> None:
        played = tenant(lost=True, faults={"mergeToDefaultBranch": [NO_ANSWER]})
        merge = planned(played)
        played.faults["listBranches"] = [REFUSED]
        with pytest.raises(PlatformTransportError, match="may have merged the branch") as raised:
            sent(played, merge)
        assert raised.value.processed is None

    def test_merge_by_another_client_is_not_reported_as_the_tasks_merge(self) -> None:
        """Production moved, and our merge was not made: it is sent and made."""
        played = tenant(faults={"mergeToDefaultBranch": [NO_ANSWER]})
        merge = planned(played)
        played.commits["main"] = "theirs"
        assert sent(played, merge).merged is True
        assert played.commits["main"] == "theirs+b1"

    COMMITS = st.sampled_from([None, "m1", "b1", "x", "y"])

    @given(COMMITS, st.one_of(st.just("gone"), COMMITS))
    def test_a_lost_merge_is_sent_again_only_for_the_same_commit(
        self, now_at: str | None, branch_at: str | None
    ) -> None:
        merge = Merge(1, BRANCH, "default", "main", True, "b1", "m1")
        branches = {"main": BranchResponse(name="main", last_hash=now_at)}
        if branch_at != "gone":
            branches[BRANCH] = BranchResponse(name=BRANCH, last_hash=branch_at)
        try:
            found = judge_lost(merge, branches)
        except BranchNotFoundError:
            assert (branch_at, now_at) == ("gone", "m1")
        except PlatformOutcomeUnknownError:
            assert branch_at != "b1"
        else:
            if found == UNSURE:
                assert (branch_at, now_at in ("m1", "b1")) == ("b1", False)
            elif found == NOT_MADE:
                assert now_at == "m1"
            else:
                assert found == MADE
                assert now_at == "b1"

    def test_error_of_an_unclear_merge_names_all_commits(self) -> None:
        merge = Merge(1, BRANCH, "default", "main", True, "b1", "m1")
        branches = {"main": BranchResponse(name="main", last_hash="x")}
        branches[BRANCH] = BranchResponse(name=BRANCH, last_hash="y")
        words = "main changed from commit m1 to commit x. The branch changed from commit b1 to "
        with pytest.raises(PlatformOutcomeUnknownError, match=f"{words}commit y"):
            judge_lost(merge, branches)

    def test_error_of_a_merge_in_doubt_names_the_branch_and_its_requests_have_the_deadline(
        self,
    ) -> None:
        played = tenant(faults={"mergeToDefaultBranch": [NO_ANSWER]})
        with pytest.raises(PlatformTransportError, match=rf"branch {BRANCH}, deployment 1"):
            sent(played, planned(played), deadline=NOON + 60)
        assert set(played.deadlines[-2:]) == {NOON + 60}


class TestBuild:
    def waited(
        self, played: PlayedBranches, merge: Merge, *builds: dict[str, Any], seconds: float = 900.0
    ) -> Build:
        played.builds = [{"mode": "production", **build} for build in builds]
        return played.run(self.waiting(played, merge, seconds))

    def waiting(self, played: PlayedBranches, merge: Merge, seconds: float = 900.0) -> Any:
        env = RunEnvironment(NOON + seconds)
        return MergeRunKind().follow(api_with(played.clock), env, {"merge": merge.to_json()})

    @pytest.mark.parametrize("fast_forward", [True, False])
    def test_wait_continues_after_the_build_of_the_previous_model(self, fast_forward: bool) -> None:
        played = tenant(fast_forward=fast_forward)
        merge = sent(played, planned(played))
        commit = played.commits["main"]
        old = {"status": "built", "lastHash": "m1"}
        building = {"status": "building", "lastHash": commit}
        built = {"status": "built", "lastHash": commit}
        found = self.waited(played, merge, old, old, building, built)
        assert found == Build("built", commit, "production")
        assert len(played.times("buildStatus")) == 4

    def test_wait_continues_after_the_build_of_a_commit_before_the_merge(self) -> None:
        played = tenant()
        merge = planned(played)
        played.commits["main"] = "theirs"
        merge = sent(played, merge)
        theirs = {"status": "built", "lastHash": "theirs"}
        both = {"status": "built", "lastHash": "theirs+b1"}
        assert self.waited(played, merge, theirs, both).hash == "theirs+b1"

    def test_build_of_a_later_commit_contains_the_merge(self) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        played.commits["main"] = "later"
        assert self.waited(played, merge, {"status": "built", "lastHash": "later"}).hash == "later"

    def test_failed_build_says_that_a_retry_merges_nothing(self) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        failed = {"status": "failed", "lastHash": "m1+b1", "errorText": "orders.yml"}
        with pytest.raises(
            MergedBuildFailedError, match=r"merged into main.*orders\.yml.*does not merge again"
        ):
            self.waited(played, merge, failed)

    def test_deadline_says_that_the_branch_is_merged(self) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        with pytest.raises(PlatformDeadlineError, match=r"is merged.*does not merge again"):
            self.waited(played, merge, {"status": "building", "lastHash": "m1+b1"}, seconds=60)

    def test_wait_after_a_clear_counts_from_the_new_merge(self) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        played.commits[BRANCH] = "b2"
        earlier = {"deployment_id": 1, "branch_name": BRANCH, "merge": merge.to_json()}
        earlier |= {"submitted_at": NOON - 9000.0, "followed_since": NOON - 8000.0}
        kind = MergeRunKind(branch_name=BRANCH, deployment_id=1)
        config = PlatformConfig.build(host="https://acme.example.com/api", management_token="t")
        api, env = api_with(played.clock, config), RunEnvironment(NOON + 900.0)
        played.run(kind.submit(api, env, earlier, until_end=False))
        (accepted,) = [event for event in played.events if isinstance(event, RunAccepted)]
        assert set(accepted.ids) == {"deployment_id", "submitted_at", "branch_name", "merge"}
        assert accepted.ids["submitted_at"] >= NOON

    def test_merge_without_a_new_commit_counts_as_built_after_the_grace_time(self) -> None:
        played = tenant()
        merge = planned(played).answered(NOON, merged=True)  # and production did not move
        found = self.waited(played, merge, {"status": "built", "lastHash": "m1"})
        assert found.hash == "m1"
        assert played.now - NOON > ACTIVATION_GRACE

    def test_wait_ends_at_once_if_production_is_already_built_from_the_commit(self) -> None:
        played = tenant(fast_forward=True)
        merge = planned(played)
        sent(played, merge)  # by somebody else
        merge = sent(played, merge)
        assert merge.merged is False
        assert self.waited(played, merge, {"status": "built", "lastHash": "b1"}).hash == "b1"
        assert len(played.times("buildStatus")) == 1

    def test_build_of_another_commit_is_shown_with_its_commit(self) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        old = {"status": "built", "lastHash": "m1"}
        self.waited(played, merge, old, {"status": "built", "lastHash": "m1+b1"})
        [seen] = [event for event in played.events if isinstance(event, BuildSeen)]
        assert "(of commit m1)" in str(seen)

    def test_new_build_counts_at_once_if_the_commit_of_production_before_is_unknown(self) -> None:
        played = tenant()
        merge = replace(sent(played, planned(played)), target_hash=None, built_hash="m1")
        assert self.waited(played, merge, {"status": "built", "lastHash": "any"}).hash == "any"

    @pytest.mark.parametrize("listed", [True, False])
    def test_build_counts_if_the_list_of_branches_names_no_commit_of_production(
        self, listed: bool
    ) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        played.commits = {BRANCH: "b1"} if listed else {}
        assert self.waited(played, merge, {"status": "built", "lastHash": "m1+b1"}).hash == "m1+b1"

    @pytest.mark.parametrize(
        ("old", "new"),
        [({}, {}), ({"lastHash": "m1"}, {"lastHash": "m1+b1"})],
        ids=["no commit", "commits"],
    )
    @pytest.mark.parametrize("listed", [True, False])
    def test_build_of_the_previous_model_does_not_count_on_a_tenant_that_names_no_commit(
        self, old: dict[str, Any], new: dict[str, Any], listed: bool
    ) -> None:
        played = tenant()
        merge = replace(sent(played, planned(played)), built_hash=old.get("lastHash"))
        if not listed:
            merge, played.commits = replace(merge, target_hash=None), {}
        old, new = {"status": "built", **old}, {"status": "built", **new}
        found = self.waited(played, merge, old, old, {**old, "status": "building"}, new)
        assert found.hash == new.get("lastHash")
        assert len(played.times("buildStatus")) == 4
        assert played.now - NOON < ACTIVATION_GRACE

    @pytest.mark.parametrize("status", ["built", "stopped"])
    def test_status_without_a_commit_counts_after_the_grace_time_with_a_warning(
        self, status: str
    ) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        still = [{"status": status}] * 13
        assert self.waited(played, merge, *still, {"status": "built"}).status == "built"
        assert played.now - NOON > ACTIVATION_GRACE
        [line] = [one for one in played.events if isinstance(one, LogLine)]
        assert line.is_warning
        assert "does not name the commit of main, and no build was seen" in line.text

    def test_failed_build_before_the_merge_is_none_of_the_merge_without_commits(self) -> None:
        played = tenant()
        merge = sent(played, planned(played))
        failed = {"status": "failed", "errorText": "of yesterday"}
        found = self.waited(played, merge, failed, {"status": "warmup"}, {"status": "built"})
        assert found.status == "built"
