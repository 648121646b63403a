"""Gates in DAG runs against the sandbox: a branch that passes is merged, others are kept."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.sql.operators.sql import BranchSQLOperator, SQLCheckOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, task, task_group

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators import branches
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

COUNT = "SELECT COUNT(*) AS orders FROM orders"
BRANCH = "dbt-sync/main-1"
modes = pytest.mark.parametrize("deferrable", [False, True], ids=["on the worker", "deferred"])
soon: dict[str, Any] = {"poll_interval": 0.05, "default_args": {"retries": 0}}
STAGING = {"method": "PUT", "path": "/staging-environment$"}


@pytest.fixture(autouse=True)
def branch(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(build_delay=0.1, build_seconds=0.2, pace=0.01)
    platform_sandbox.control.add_branch(BRANCH)


def counting(gate: Any, sql: str = COUNT) -> PlatformQueryOperator:
    return PlatformQueryOperator(task_id="count", sql=sql, branch_name=gate.branch_name)


def id_of(name: str, arguments: dict[str, Any]) -> str:
    """One id for each shape of a gate: `DAG.test` of Airflow 3.1 keeps the first tasks of an id."""
    return "_".join(
        [name, *(str(arguments[key]) for key in ("merge", "delete") if key in arguments)]
    )


def gated(sql: str = COUNT, *, first: Callable[[], Any] | None = None, **arguments: Any) -> DAG:
    """A gate around one query, before which `first` is called, and a task after it."""
    with DAG(dag_id=id_of("gated", arguments), default_args={"retries": 0}) as dag:
        with branch_gate(BRANCH, **{**soon, **arguments}) as gate:

            @task
            def begin() -> None:
                if first is not None:
                    first()

            begin() >> counting(gate, sql)

        @task
        def publish() -> str:
            return "published"

        gate >> publish()
    return dag


def merged(sandbox: Sandbox) -> list[str]:
    return [str(entry.id) for entry in sandbox.control.state().changed("branches", "merged")]


def requests(sandbox: Sandbox) -> list[Any]:
    return list(sandbox.control.state().requests)


def asked(sandbox: Sandbox) -> list[str]:
    """The paths of all queries."""
    paths = [one.path for one in requests(sandbox)]
    return [path for path in paths if path.endswith("/cubesql")]


def is_open(name: str) -> bool:
    hook = PlatformHook()
    try:
        return bool(list(hook.run_sql(COUNT, branch_name=name, timeout=60)))
    except Exception:  # noqa: BLE001 - whatever it was, the branch does not answer
        return False


def errors(run: FinishedRun) -> dict[str, str]:
    return {one.task_id: one.error for one in run.tasks if one.error}


def test_branch_whose_checks_succeed_is_merged_and_deleted(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    run = run_dag(gated(deferrable=True))
    assert errors(run) == {}
    assert set(run.states.values()) == {"success"}
    assert merged(platform_sandbox) == [BRANCH]
    assert platform_sandbox.control.branches() == ["dev", "main"]
    result = run.xcom("branch_gate.merge")
    assert (result["merged"], result["status"]) == (True, "built")


@pytest.mark.exhaustive
def test_question_sql_and_own_tasks_inside_ask_the_branch(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with (
        DAG(dag_id="asked", default_args={"retries": 0}) as dag,
        branch_gate(BRANCH, group_id="gate", **soon) as gate,
    ):
        ask = PlatformChatOperator(
            task_id="ask", prompt="total revenue", active_branch_name=gate.branch_name
        )

        @task
        def own(branch_name: str) -> int:
            return len(list(PlatformHook().run_sql(COUNT, branch_name=branch_name)))

        ask >> [counting(gate), own(gate.branch_name)]
    run = run_dag(dag)
    assert errors(run) == {}
    assert run.task("gate.ask").xcoms["queries"][0]["error"] is None
    [asked] = {one.branch for one in platform_sandbox.control.state().runs}
    assert asked == run.xcom("gate.built")["branch_name"] == BRANCH


@pytest.mark.exhaustive
def test_branch_whose_check_fails_is_closed_and_kept(
    run_dag: RunDag, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_dag(gated("SELECT nothing FROM nowhere"))
    assert run.state == "failed"
    assert run.states["branch_gate.merge"] == run.states["publish"] == "upstream_failed"
    assert run.states["branch_gate.close"] == run.states["branch_gate.delete"] == "success"
    assert merged(platform_sandbox) == []
    assert BRANCH in platform_sandbox.control.branches()
    assert not is_open(run.xcom("branch_gate.built")["branch_name"])
    assert "Closing deletes nothing: to open the branch again" in capsys.readouterr().out


@pytest.mark.exhaustive
@modes
def test_branch_whose_model_does_not_compile_is_closed_and_kept(
    deferrable: bool, run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.add_branch(BRANCH, compiles=False)
    run = run_dag(gated(deferrable=deferrable))
    assert run.state == run.states["branch_gate.built"] == "failed"
    assert "customers, which does not exist" in errors(run)["branch_gate.built"]
    assert run.states["branch_gate.count"] == "upstream_failed"
    assert run.xcom("branch_gate.close")["closed"] is True
    assert (merged(platform_sandbox), BRANCH in platform_sandbox.control.branches()) == ([], True)


def test_branch_whose_check_is_skipped_is_closed_and_kept(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with (
        DAG(dag_id="closed", default_args={"retries": 0}) as dag,
        branch_gate(BRANCH, **soon) as gate,
    ):

        @task.short_circuit
        def enough() -> bool:
            return False

        counting(gate) >> enough()
    run = run_dag(dag)
    assert run.state == "success"
    assert run.states["branch_gate.merge"] == "skipped"
    assert run.xcom("branch_gate.close")["closed"] is True
    assert (merged(platform_sandbox), BRANCH in platform_sandbox.control.branches()) == ([], True)


@pytest.mark.parametrize("chosen", [None, "after", "branch_gate.count"])
def test_branch_is_closed_and_kept_whatever_a_branching_task_chooses(
    run_dag: RunDag, platform_sandbox: Sandbox, chosen: str | None
) -> None:
    """Such a task skips all tasks directly after it that it does not choose, even teardowns."""
    with DAG(dag_id="chosen", default_args={"retries": 0}) as dag:
        after = EmptyOperator(task_id="after")
        with branch_gate(BRANCH, **soon) as gate:

            @task.branch
            def choose() -> str | None:
                return chosen

            choose() >> [counting(gate), EmptyOperator(task_id="other"), after]
    run = run_dag(dag)
    assert (run.state, run.states["branch_gate.merge"]) == ("success", "skipped")
    assert run.xcom("branch_gate.close")["closed"] is True
    assert (merged(platform_sandbox), BRANCH in platform_sandbox.control.branches()) == ([], True)


def test_close_waits_for_all_tasks_inside_but_not_for_those_that_would_skip_it() -> None:
    with DAG(dag_id="waiting") as dag, branch_gate(BRANCH) as gate:

        @task.short_circuit
        def enough() -> bool:
            return True

        BranchSQLOperator(
            task_id="pick",
            conn_id="platform_default",
            hook_params={"branch_name": gate.branch_name},
            sql="SELECT 1",
            follow_task_ids_if_true="branch_gate.count",
            follow_task_ids_if_false=[],
        ) >> counting(gate)
        enough()
    names = {"merge", "open", "built", "count", "enough"}
    assert dag.get_task("branch_gate.close").upstream_task_ids == {
        f"branch_gate.{name}" for name in names
    }


class TestLenientRules:
    """A last task that runs after a failure, such as a report, does not decide the merge."""

    @staticmethod
    def reported(rule: str, **gate_arguments: Any) -> DAG:
        with (
            DAG(dag_id="reported", default_args={"retries": 0}) as dag,
            branch_gate(BRANCH, **{**soon, **gate_arguments}) as gate,
        ):

            @task(trigger_rule="all_success")  # whatever the default rule of the group
            def check(branch: str) -> None:
                raise ValueError(f"{branch} is wrong")

            @task(trigger_rule="all_success")
            def good(branch: str) -> None: ...

            @task(trigger_rule=rule)
            def report() -> str:
                return "reported"

            [check(gate.branch_name), good(gate.branch_name)] >> report()
        return dag

    def test_branch_with_a_failed_check_is_not_merged(
        self, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        run = run_dag(self.reported("all_done"))
        assert run.states["branch_gate.report"] == "success"
        assert run.states["branch_gate.merge"] == "upstream_failed"
        assert merged(platform_sandbox) == []
        assert BRANCH in platform_sandbox.control.branches()

    @pytest.mark.exhaustive
    def test_default_rule_of_the_group_does_not_merge_either(
        self, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        defaults = {"retries": 0, "trigger_rule": "all_done"}
        run = run_dag(self.reported("all_done", default_args=defaults))
        assert run.states["branch_gate.merge"] == "upstream_failed"
        assert merged(platform_sandbox) == []

    @pytest.mark.exhaustive
    def test_check_after_a_branch_that_is_not_built_does_not_run(
        self, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        """Airflow runs no task after a setup that has failed, whatever the rule of the task."""
        platform_sandbox.control.add_branch(BRANCH, compiles=False)
        run = run_dag(self.asked_after_a_failure())
        assert run.states["branch_gate.built"] == "failed"
        assert run.states["branch_gate.count"] == "upstream_failed"
        assert not asked(platform_sandbox)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("named", "opened"),
        [(lambda name: name, None), (str, {"branch_name": ""})],
        ids=["output", "template"],
    )
    def test_check_after_an_opening_that_somebody_marked_as_successful_does_not_ask_production(
        self, named: Any, opened: Any, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        dag = self.asked_after_a_failure(named)
        dag.get_task("branch_gate.built").execute = lambda context: opened
        run = run_dag(dag)
        assert run.states["branch_gate.commit"] == run.states["branch_gate.count"] == "failed"
        assert not asked(platform_sandbox)
        assert merged(platform_sandbox) == []

    @staticmethod
    def asked_after_a_failure(named: Callable[[Any], Any] = str) -> DAG:
        with (
            DAG(dag_id="always", default_args={"retries": 0}) as dag,
            branch_gate(BRANCH, **soon) as gate,
        ):

            @task
            def begin() -> None: ...

            begin() >> PlatformQueryOperator(
                task_id="count",
                sql=COUNT,
                branch_name=named(gate.branch_name),
                trigger_rule="all_done",
            )
        return dag


@pytest.mark.exhaustive
def test_default_args_that_the_gate_relies_on_do_not_reach_its_own_tasks(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    names = []
    off = dict.fromkeys(("do_xcom_push", "multiple_outputs", "wait_for_build"), False)
    defaults = {"retries": 0, **off}
    with (
        DAG(dag_id="defaults", default_args=defaults) as dag,
        branch_gate(BRANCH, **{**soon, "default_args": defaults}) as gate,
    ):

        @task
        def own(branch: str) -> None:
            names.append(branch)

        own(gate.branch_name)
    run = run_dag(dag)
    assert errors(run) == {}
    assert (names, merged(platform_sandbox)) == ([BRANCH], [BRANCH])
    assert run.xcom("branch_gate.merge")["status"] == "built"


class TestPlace:
    """All tasks of a gate work in one deployment of one connection: a merge in another one would
    bring into production what nobody checked."""

    @staticmethod
    def places(dag: DAG, name: str) -> set[str]:
        tasks = [one for one in dag.tasks if hasattr(one, "deployment_id")]
        assert len(tasks) == 6
        return {str(getattr(one, name)) for one in tasks}

    @pytest.mark.parametrize(
        ("name", "value"), [("deployment_id", 7), ("platform_conn_id", "platform_eu")]
    )
    @pytest.mark.parametrize("given_by", ["the DAG", "default_args of the gate", "the gate"])
    def test_default_args_and_the_gate_give_it_to_all_tasks(
        self, given_by: str, name: str, value: Any
    ) -> None:
        given = {name: value}
        others = {name: "of nobody"} if given_by == "the gate" else {}
        arguments: dict[str, Any] = {
            "the DAG": {},
            "default_args of the gate": {"default_args": given},
            "the gate": {**given, "default_args": others},
        }[given_by]
        of_dag: Any = given if given_by == "the DAG" else others
        with DAG("placed", default_args=of_dag) as dag, branch_gate(BRANCH, **arguments) as gate:
            counting(gate)
        assert self.places(dag, name) == {str(value)}

    def test_connection_of_the_merge_is_that_of_the_merge_only(self) -> None:
        with (
            DAG("merging", default_args={"platform_conn_id": "platform_eu"}) as dag,
            branch_gate(
                BRANCH, merge_conn_id="publisher", deployment_id=2, group_id="gate"
            ) as gate,
        ):
            counting(gate)
        found = {one.task_id: getattr(one, "platform_conn_id", None) for one in dag.tasks}
        assert [one for one, conn in found.items() if conn == "publisher"] == ["gate.merge"]
        assert found["gate.count"] == found["gate.delete"] == "platform_eu"

    def test_merge_by_another_connection_needs_the_deployment(self) -> None:
        """The deployment of that connection can have a branch of the same name and commit, which
        nobody has checked."""
        with pytest.raises(PlatformInputError, match="deployment_id is needed with merge_conn_id"):
            self.merged_by_publisher()

    @pytest.mark.parametrize(
        "given",
        [
            {"platform_conn_id": "publisher"},
            {"deployment_id": 2},
            {"default_args": {"deployment_id": 2}},
            {"of_the_dag": {"deployment_id": 2}},
            {"of_the_sync": {"deployment_id": 2}},
        ],
        ids=str,
    )
    def test_merge_by_a_connection_whose_deployment_is_known(self, given: dict[str, Any]) -> None:
        dag = self.merged_by_publisher(**given)
        opened, merge = (dag.get_task(f"branch_gate.{name}") for name in ("open", "merge"))
        assert merge.platform_conn_id == "publisher"
        assert merge.deployment_id == opened.deployment_id
        assert opened.deployment_id == (None if "platform_conn_id" in given else 2)

    def test_gate_that_never_merges_needs_no_deployment_of_the_merge(self) -> None:
        assert not self.merged_by_publisher(merge="never").has_task("branch_gate.merge")

    def merged_by_publisher(
        self,
        of_the_dag: dict[str, Any] | None = None,
        of_the_sync: dict[str, Any] | None = None,
        **given: Any,
    ) -> DAG:
        with DAG("merging", default_args=of_the_dag or {}) as dag:
            sync = PlatformDbtSyncOperator(task_id="sync", **(of_the_sync or {}))
            branch = sync.output["branch_name"] if of_the_sync else BRANCH
            with branch_gate(branch, merge_conn_id="publisher", **given) as gate:
                counting(gate)
        return dag

    def test_output_of_a_task_gives_it_to_tasks_of_groups_inside(
        self, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        with DAG("output", default_args={"retries": 0}) as dag:

            @task
            def deployment() -> int:
                return 2

            with branch_gate(BRANCH, deployment_id=deployment(), **soon) as gate, TaskGroup("in"):
                counting(gate)
        assert len(self.places(dag, "deployment_id")) == 1
        run = run_dag(dag)
        assert run.states["branch_gate.open"] == "failed"  # deployment 2 has no such branch
        assert all("/deployments/1/" not in one.path for one in requests(platform_sandbox))


@pytest.mark.exhaustive
def test_branch_with_new_commits_after_the_merge_is_not_deleted(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    dag = gated(remove_on_upstream=True)

    def commits(*_: Any) -> None:
        platform_sandbox.control.add_branch(BRANCH)

    dag.get_task("branch_gate.merge").post_execute = commits
    run = run_dag(dag)
    assert (run.state, merged(platform_sandbox)) == ("success", [BRANCH])
    assert run.xcom("branch_gate.delete")["deleted"] is False
    assert BRANCH in platform_sandbox.control.branches()


@pytest.mark.parametrize("state", ["upstream_failed", "failed", "skipped", None])
def test_cleared_gate_that_fails_keeps_the_branch_that_its_first_pass_merged(
    state: str | None, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`merge` did not run again, so Airflow has kept the XComs of the first pass."""
    delete: Any = gated().get_task("branch_gate.delete")
    delete.branch_name = BRANCH
    delete.hash = next(
        one["lastHash"] for one in PlatformHook().iterate("listBranches") if one["name"] == BRANCH
    )
    monkeypatch.setattr(branches, "get_task_states", lambda _: state)
    assert delete.execute(TaskTries().context())["deleted"] is False
    assert BRANCH in platform_sandbox.control.branches()
    monkeypatch.setattr(branches, "get_task_states", lambda _: "success")
    assert delete.execute(TaskTries().context())["deleted"] is True


@pytest.mark.exhaustive
def test_gate_removes_the_branch_upstream_too(run_dag: RunDag, platform_sandbox: Sandbox) -> None:
    run_dag(gated(remove_on_upstream=True))
    [sent] = [one for one in platform_sandbox.control.state().requests if one.method == "DELETE"]
    assert "removeOnUpstream=true" in sent.query


@pytest.mark.exhaustive
def test_gate_is_skipped_on_a_tenant_without_staging(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(tenant="described")
    run = run_dag(gated(if_unsupported="skip"))
    assert set(run.states.values()) == {"skipped"}


class TestTeardownThatFails:
    """Closing fails: the branch's staging environment cannot be switched off."""

    @pytest.fixture
    def refuse_staging(self, platform_sandbox: Sandbox) -> Callable[[], None]:
        return lambda: platform_sandbox.control.fault("status", status=403, count=None, **STAGING)

    @pytest.mark.exhaustive
    def test_failed_closing_does_not_hide_a_failed_check(
        self, refuse_staging: Any, run_dag: RunDag
    ) -> None:
        run = run_dag(gated("SELECT nothing FROM nowhere", first=refuse_staging))
        assert run.state == "failed"
        assert set(errors(run)) == {"branch_gate.count", "branch_gate.close"}
        assert run.states["branch_gate.delete"] == "success"

    @pytest.mark.exhaustive
    def test_failed_closing_does_not_fail_a_run_that_has_merged(
        self, refuse_staging: Any, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        run = run_dag(gated(first=refuse_staging))
        assert (run.state, run.states["publish"]) == ("success", "success")
        assert set(errors(run)) == {"branch_gate.close"}
        assert merged(platform_sandbox) == [BRANCH]
        assert BRANCH not in platform_sandbox.control.branches()  # which closes it too


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("delete", "branches"),
    [({}, [BRANCH, "dev", "main"]), ({"delete": "on_success"}, ["dev", "main"])],
    ids=["kept by default", "deleted if asked for"],
)
def test_gate_without_merge_only_checks_the_branch(
    delete: Any, branches: list[str], run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    """As one must whose token has SchemaUpdateDevBranches, which may not merge."""
    platform_sandbox.control.set(token_lacks=["SchemaUpdate"])
    run = run_dag(gated(merge="never", **delete))
    assert errors(run) == {}
    assert run.states["branch_gate.passed"] == run.states["publish"] == "success"
    assert (merged(platform_sandbox), platform_sandbox.control.branches()) == ([], branches)
    assert not is_open(BRANCH)


@pytest.mark.exhaustive
def test_branch_is_deleted_after_a_failure_if_asked_for(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    run = run_dag(gated("SELECT nothing FROM nowhere", delete="always"))
    assert run.state == "failed"
    assert platform_sandbox.control.branches() == ["dev", "main"]


@pytest.mark.exhaustive
def test_branch_with_new_commits_during_the_checks_is_not_merged(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    def new_commits() -> None:
        platform_sandbox.control.set(build_delay=0, build_seconds=0)
        platform_sandbox.control.add_branch(BRANCH)

    run = run_dag(gated(first=new_commits))
    assert "was checked, but the branch is now at commit" in errors(run)["branch_gate.merge"]
    assert (merged(platform_sandbox), BRANCH in platform_sandbox.control.branches()) == ([], True)


def commit_of(name: str) -> str:
    [commit] = [
        one["lastHash"] for one in PlatformHook().iterate("listBranches") if one["name"] == name
    ]
    return str(commit)


def merge_by_hand() -> None:
    body = {"branchName": BRANCH, "message": "by hand", "removeBranchAfterMerge": False}
    PlatformHook().call("mergeToDefaultBranch", body=body)


@pytest.mark.exhaustive
def test_branch_merged_by_another_user_during_the_checks_is_not_merged_twice(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    run = run_dag(gated(first=merge_by_hand))
    assert (run.state, run.xcom("branch_gate.merge")["merged"]) == ("success", False)
    assert merged(platform_sandbox) == [BRANCH]
    assert BRANCH not in platform_sandbox.control.branches()


class TestTwoGatesOnOneBranch:
    """Both have opened the branch; the second one checks it when the first one is done."""

    @staticmethod
    def two_gates(first: str, **arguments: Any) -> DAG:
        """Gate `first` opens the branch first; gate one is done before gate two checks."""
        with DAG(dag_id=id_of("two_gates", arguments), default_args={"retries": 0}) as dag:
            with branch_gate(BRANCH, group_id="one", **{**soon, **arguments}) as one:
                early = counting(one)
            with branch_gate(BRANCH, group_id="two", **soon) as two:
                late = counting(two)
        second = "two" if first == "one" else "one"
        dag.get_task(f"{first}.built") >> dag.get_task(f"{second}.open")
        dag.get_task("two.built") >> early
        dag.get_task("one.delete" if "delete" not in arguments else "one.close") >> late
        return dag

    @pytest.mark.exhaustive
    def test_branch_is_merged_once_and_the_second_gate_fails(
        self, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        run = run_dag(self.two_gates("two"))
        assert (run.state, run.states["one.merge"]) == ("failed", "success")
        assert run.states["two.count"] == "failed"
        assert run.states["two.merge"] == "upstream_failed"
        assert merged(platform_sandbox) == [BRANCH]
        assert platform_sandbox.control.branches() == ["dev", "main"]

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(("first", "state"), [("one", "failed"), ("two", "success")])
    def test_gate_that_opened_the_branch_closes_it(
        self, first: str, state: str, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        run = run_dag(self.two_gates(first, merge="never", delete="never"))
        assert (run.state, run.states["one.passed"]) == (state, "success")
        assert run.xcom("one.close")["closed"] is (first == "one")
        assert run.states["two.count"] == state


class TestClears:
    """Somebody clears tasks of a gate and the tasks after them, in Airflow's UI."""

    @pytest.fixture
    def again(self, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FinishedRun]:
        """`again(dag, run, ids, upstream=False, marked={})`: clear the tasks, mark others."""
        runs = import_module("airflow.models.dagrun")
        if not hasattr(runs, "get_or_create_dagrun"):
            pytest.skip("this release makes the runs of DAG.test elsewhere")

        def clear(
            dag: DAG, run: FinishedRun, ids: list[str], *, upstream: bool = False, marked: Any = ()
        ) -> FinishedRun:
            def cleared(*, dag: Any, session: Any, **_: Any) -> Any:
                row = session.query(runs.DagRun).filter_by(run_id=run.run_id).one()
                chosen = dag.partial_subset(ids, include_downstream=True, include_upstream=upstream)
                dag.clear(task_ids=list(chosen.task_dict), run_id=run.run_id, session=session)
                for instance in row.get_task_instances(session=session):
                    if instance.task_id in marked:
                        instance.state = "success"
                row.state, row.dag = "running", dag
                session.commit()
                return row

            monkeypatch.setattr(runs, "get_or_create_dagrun", cleared)
            return run_dag(dag)

        return clear

    @staticmethod
    def two_checks(wrong: list[str], seen: list[tuple[str, str]], **arguments: Any) -> DAG:
        """A gate around two checks, which fail if `wrong` names them."""
        with DAG(dag_id=id_of("two_checks", arguments), default_args={"retries": 0}) as dag:
            with branch_gate(BRANCH, **{**soon, **arguments}) as gate:
                for name in ("one", "two"):

                    @task(task_id=name)
                    def check(branch: str, name: str) -> None:
                        list(PlatformHook().run_sql(COUNT, branch_name=branch))
                        seen.append((name, commit_of(branch)))
                        if name in wrong:
                            raise ValueError(f"{name} is wrong")

                    check(gate.branch_name, name)

            @task
            def publish() -> None: ...

            gate >> publish()
        return dag

    @pytest.mark.exhaustive
    def test_check_that_failed_can_be_cleared_alone(
        self, run_dag: RunDag, again: Any, platform_sandbox: Sandbox
    ) -> None:
        wrong, seen = ["two"], []  # type: ignore[var-annotated]
        dag = self.two_checks(wrong, seen)
        run = run_dag(dag)
        wrong.clear()
        run = again(dag, run, ["branch_gate.two"])
        assert sorted(name for name, _ in seen) == ["one", "two", "two"]
        assert (run.state, merged(platform_sandbox)) == ("success", [BRANCH])

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "upstream", [False, True], ids=["with downstream", "with upstream too"]
    )
    def test_check_that_is_cleared_alone_after_a_new_commit_does_not_vouch_for_the_others(
        self, upstream: bool, run_dag: RunDag, again: Any, platform_sandbox: Sandbox
    ) -> None:
        wrong, seen = ["two"], []  # type: ignore[var-annotated]
        dag = self.two_checks(wrong, seen)
        run = run_dag(dag)
        wrong.clear()
        platform_sandbox.control.add_branch(BRANCH)
        run = again(dag, run, ["branch_gate.two"], upstream=upstream)
        refused = errors(run)["branch_gate.commit" if upstream else "branch_gate.merge"]
        assert "lear the whole gate" in refused
        assert merged(platform_sandbox) == []
        assert BRANCH in platform_sandbox.control.branches()
        run = again(dag, run, ["branch_gate.open"])
        assert (run.state, merged(platform_sandbox)) == ("success", [BRANCH])
        assert {commit for _, commit in seen[-2:]} == {seen[-1][1]}

    @pytest.mark.exhaustive
    def test_gate_without_merge_does_not_pass_a_branch_with_checks_of_two_commits(
        self, run_dag: RunDag, again: Any, platform_sandbox: Sandbox
    ) -> None:
        wrong = ["two"]
        dag = self.two_checks(wrong, [], merge="never")
        run = run_dag(dag)
        wrong.clear()
        platform_sandbox.control.add_branch(BRANCH)
        run = again(dag, run, ["branch_gate.two"])
        assert "Some tasks checked commit" in errors(run)["branch_gate.passed"]

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("arguments", [{}, {"merge": "never", "delete": "on_success"}])
    def test_branch_is_kept_if_somebody_marks_the_last_task_as_successful(
        self, arguments: Any, run_dag: RunDag, again: Any, platform_sandbox: Sandbox
    ) -> None:
        dag = self.two_checks(["two"], [], **arguments)
        run = run_dag(dag)
        last = "passed" if arguments else "merge"
        run = again(dag, run, ["branch_gate.close"], marked=[f"branch_gate.{last}"])
        assert run.states[f"branch_gate.{last}"] == "success"
        assert run.xcom("branch_gate.delete")["deleted"] is False
        assert BRANCH in platform_sandbox.control.branches()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("opened", ["as before", "without its commit"])
    def test_gate_whose_commit_is_unknown_merges_nothing(
        self, opened: str, run_dag: RunDag, platform_sandbox: Sandbox
    ) -> None:
        dag, known = gated(), opened == "as before"
        result = {"branch_name": BRANCH, "branch_hash": commit_of(BRANCH) if known else None}
        dag.get_task("branch_gate.commit").execute = lambda context: result
        run = run_dag(dag)
        assert merged(platform_sandbox) == ([BRANCH] if known else [])
        if not known:
            error = errors(run)["branch_gate.merge"]
            assert "has returned no branch_hash" in error
            assert "If the service names no commits, this does not help: use merge='never'" in error


@pytest.mark.exhaustive
def test_mapped_gates_do_not_affect_each_other(run_dag: RunDag, platform_sandbox: Sandbox) -> None:
    names = ["one", "two", "three"]
    for name in names:
        platform_sandbox.control.add_branch(name)
    with DAG(dag_id="mapped", default_args={"retries": 0}) as dag:

        @task_group
        def proved(name: str) -> None:
            with branch_gate(name, **soon) as gate:

                @task
                def check(name: str, asked: str) -> str:
                    list(PlatformHook().run_sql(COUNT, branch_name=asked))
                    if name == "two":
                        raise ValueError("two is wrong")
                    return asked

                check(name, gate.branch_name)

        proved.expand(name=names)
    run = run_dag(dag)
    assert [run.states[f"proved.branch_gate.merge[{at}]"] for at in range(3)] == [
        "success",
        "upstream_failed",
        "success",
    ]
    assert sorted(merged(platform_sandbox)) == ["one", "three"]
    assert platform_sandbox.control.branches() == [BRANCH, "dev", "main", "two"]
    assert not is_open("two")
    for at in (0, 2):
        assert run.xcom("proved.branch_gate.check", map_index=at) == names[at]


class TestGraph:
    def test_tasks_inside_run_between_opening_and_closing(self) -> None:
        with DAG(dag_id="graph") as dag:
            with branch_gate(BRANCH) as gate:

                @task
                def first() -> None: ...

                @task
                def second() -> None: ...

                @task
                def alone() -> None: ...

                first() >> second()
                alone()
            assert gate.group_id == "branch_gate"
        tasks = {one.task_id.removeprefix("branch_gate."): one for one in dag.tasks}

        def after(name: str) -> set[str]:
            return {one.removeprefix("branch_gate.") for one in tasks[name].downstream_task_ids}

        assert after("open") == {"built", "close", "delete"}
        assert after("built") == {"commit", "close", "delete"}
        assert after("commit") == {"first", "alone", "merge"}
        assert not tasks["commit"].is_setup  # or a cleared check would run it again
        assert after("second") == after("alone") == {"merge", "close"}
        # Also where another task has failed, `close` waits for one that is still running.
        assert after("first") == {"second", "merge", "close"}
        assert after("merge") == {"close", "delete"}
        assert after("close") == {"delete"}
        assert all(tasks[name].is_setup for name in ("open", "built"))
        assert all(tasks[name].is_teardown for name in ("close", "delete"))

    def test_task_that_is_added_later_is_refused(self) -> None:
        with DAG(dag_id="late"):
            with branch_gate(BRANCH) as gate:
                counting(gate)
            with pytest.raises(PlatformInputError, match="after the end of its with block"), gate:
                counting(gate).task_id = "late"

    @pytest.mark.parametrize("inside_of", ["with block", "argument"])
    def test_task_that_is_added_later_to_a_group_inside_is_refused(self, inside_of: str) -> None:
        with DAG(dag_id="late"):
            with branch_gate(BRANCH) as gate, TaskGroup("outer"), TaskGroup("inner") as inner:
                EmptyOperator(task_id="check")
            group = inner if inside_of == "argument" else None
            with (
                pytest.raises(PlatformInputError, match="after the end of its with block"),
                nullcontext() if group else inner,
            ):
                EmptyOperator(task_id="late", task_group=group)
        assert gate.group_id == "branch_gate"

    @pytest.mark.parametrize("teardown", [False, True])
    def test_gate_without_a_check_is_refused(self, teardown: bool) -> None:
        with (  # noqa: PT012 - the gate is refused at its end
            DAG(dag_id="empty"),
            pytest.raises(PlatformInputError, match="it would merge the branch unchecked"),
            branch_gate(BRANCH),
        ):
            if teardown:
                EmptyOperator(task_id="clean").as_teardown()

    @pytest.mark.parametrize("mapped", [False, True])
    def test_evaluation_without_a_gate_of_its_own_is_refused_inside_a_gate(
        self, mapped: bool
    ) -> None:
        suite = [{"name": "a", "question": "b", "sql": "SELECT 1"}]
        with (  # noqa: PT012 - the gate is refused at its end
            DAG(dag_id="ungated"),
            pytest.raises(PlatformInputError, match=r"suite of the branch gate never fails"),
            branch_gate(BRANCH),
        ):
            options: dict[str, Any] = {"task_id": "suite", "no_regression": False}
            if mapped:
                PlatformEvaluationOperator.partial(**options).expand(questions=[suite])
            else:
                PlatformEvaluationOperator(questions=suite, **options)

    @pytest.mark.parametrize("mapped", [False, True])
    @pytest.mark.parametrize("name", ["branch_name", "active_branch_name"])
    def test_check_that_names_no_branch_is_refused(self, mapped: bool, name: str) -> None:
        operator: Any = PlatformQueryOperator
        given: dict[str, Any] = {"sql": COUNT}
        if name == "active_branch_name":
            operator, given = PlatformChatOperator, {"prompt": "total revenue"}
        with (  # noqa: PT012 - the gate is refused at its end
            DAG(dag_id="asks_production"),
            pytest.raises(PlatformInputError, match=f"check of the branch gate has no {name}"),
            branch_gate(BRANCH),
        ):
            if mapped:
                values = {key: [value] for key, value in given.items()}
                operator.partial(task_id="check").expand(**values)
            else:
                operator(task_id="check", **given)

    @pytest.mark.parametrize("mapped", [False, True])
    def test_sql_check_that_names_no_branch_is_refused(self, mapped: bool) -> None:
        given: dict[str, Any] = {"task_id": "check", "conn_id": "platform_default"}
        with (  # noqa: PT012 - the gate is refused at its end
            DAG(dag_id="asks_production"),
            pytest.raises(PlatformInputError, match="has no branch_name in hook_params"),
            branch_gate(BRANCH),
        ):
            if mapped:
                SQLCheckOperator.partial(**given).expand(sql=[COUNT])
            else:
                SQLCheckOperator(sql=COUNT, **given)

    def test_sql_check_of_the_branch_or_elsewhere_is_allowed(self) -> None:
        with DAG(dag_id="sql_checks") as dag, branch_gate(BRANCH) as gate:
            SQLCheckOperator(
                task_id="check",
                sql=COUNT,
                conn_id="platform_default",
                hook_params={"branch_name": gate.branch_name},
            )
            SQLCheckOperator(task_id="other", sql=COUNT, conn_id="warehouse")
        assert dag.has_task("branch_gate.merge")

    @pytest.mark.parametrize("of_gate", [False, True])
    def test_default_args_name_the_branch_of_a_mapped_check(self, of_gate: bool) -> None:
        named: dict[str, Any] = {"branch_name": BRANCH}
        operator: Any = PlatformQueryOperator
        with (
            DAG(dag_id="default_args", default_args={} if of_gate else named) as dag,
            branch_gate(BRANCH, default_args=named if of_gate else {}),
        ):
            operator.partial(task_id="check").expand(sql=[COUNT])
        assert dag.has_task("branch_gate.merge")

    def test_operator_that_takes_no_hook_params_is_no_sql_check(self) -> None:
        with DAG(dag_id="own_operator") as dag, branch_gate(BRANCH):
            operator: Any = EmptyOperator(task_id="check")
            operator.conn_id = "platform_default"
        assert dag.has_task("branch_gate.merge")

    def test_chat_that_is_to_ask_production_is_no_mistake(self) -> None:
        with DAG(dag_id="asks_both") as dag, branch_gate(BRANCH) as gate:
            PlatformChatOperator(task_id="ask", prompt="total revenue", is_default_branch=True)
            counting(gate)
        assert dag.has_task("branch_gate.ask")

    @pytest.mark.parametrize(
        ("arguments", "deployment_id"),
        [
            ({}, 2),
            ({"deployment_id": 3}, 3),
            ({"default_args": {"deployment_id": 3}}, 3),
            ({"default_args": {"deployment_id": None}}, 2),
            ({"platform_conn_id": "other"}, None),
        ],
    )
    def test_gate_works_in_the_deployment_of_the_sync(
        self, arguments: dict[str, Any], deployment_id: int | None
    ) -> None:
        with DAG(dag_id="of_the_sync", default_args={"platform_conn_id": "mine"}) as dag:
            sync = PlatformDbtSyncOperator(task_id="sync", deployment_id=2)
            with branch_gate(sync.output["branch_name"], **arguments) as gate:
                counting(gate)
        inside = [one for one in dag.tasks if isinstance(one, DeploymentOperator)]
        found = {one.task_id: one.deployment_id for one in inside if one.task_id != "sync"}
        assert len(found) == 6
        assert set(found.values()) == {deployment_id}

    def test_merge_waits_for_setups_but_not_for_teardowns_of_the_author(self) -> None:
        with DAG(dag_id="own_teardown") as dag, branch_gate(BRANCH):

            @task
            def make() -> None: ...

            @task
            def check() -> None: ...

            @task
            def clean() -> None: ...

            made = make()
            made >> check() >> clean().as_teardown(setups=made)
        merge = dag.get_task("branch_gate.merge")
        assert merge.upstream_task_ids == {
            "branch_gate.commit",
            "branch_gate.make",
            "branch_gate.check",
        }
        assert "branch_gate.clean" in dag.get_task("branch_gate.close").upstream_task_ids

    def test_clearing_a_task_inside_opens_the_branch_again(self) -> None:
        dag = gated()
        cleared = dag.partial_subset(["branch_gate.count"], include_upstream=False)
        names = {name.removeprefix("branch_gate.") for name in cleared.task_dict}
        assert names == {"open", "built", "count", "close", "delete"}

    @pytest.mark.parametrize(
        "arguments",
        [
            {"merge": "always"},
            {"delete": "perhaps"},
            {"if_unsupported": "perhaps"},
            {"into": "main"},
            {"timeout": 0},
            {"merge_timeout": -1},
        ],
        ids=str,
    )
    def test_bad_arguments_are_refused_when_the_dag_is_parsed(
        self, arguments: dict[str, Any]
    ) -> None:
        with (
            DAG(dag_id="bad"),
            pytest.raises(PlatformInputError, match=next(iter(arguments)).removeprefix("merge_")),
            branch_gate(BRANCH, **arguments),
        ):
            pass
