"""An open branch that falls asleep, in any history: the task that waits for it wakes it.

The service suspends a staging environment that nobody queries. Its build status is then `stopped`,
until its data API gets a request. The histories here let the branch fall asleep before any look,
lose requests that would wake it, make builds last, and end the try anywhere; the next try opens the
branch again and waits for it, as `open` of a gate does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.branch_opening import BranchRunKind
from airflow_provider_platform.resources.run_kind import RunEnvironment
from tests.support.fakes.effects import OpenDataStream, api_with
from tests.support.fakes.played_branches import PlayedBranches

if TYPE_CHECKING:
    from airflow_provider_platform.client.operation import Operation

BRANCH = "dbt-sync/main-1"
CONFIG = PlatformConfig.build(
    host="https://acme.example.com", password="management-token", deployment_id=1
)
MOST_LOST = 5
"""Lost requests in a row: with a look every 5 seconds, far less than the minute of patience."""


@dataclass
class SleepingBranches(PlayedBranches):
    """The service. `sleeps` says for each look whether the branch falls asleep before it, `losses`
    for each request that would wake it whether it is lost. A woken branch is built anew, for
    `building` looks."""

    sleeps: list[bool] = field(default_factory=list)
    losses: list[bool] = field(default_factory=list)
    building: int = 0
    looks_asleep: int = 0
    left: int = 0

    def _carry_out(self, effect: object) -> Any:
        if isinstance(effect, OpenDataStream) and self.losses and self.losses.pop(0):
            self.woken.append(effect.url)
            raise PlatformTransportError("the request is lost")
        if isinstance(effect, OpenDataStream):
            self.left, self.asleep = self.building, False
            self.woken.append(effect.url)
            raise PlatformAddressError("the environment starts: an error page")
        return super()._carry_out(effect)

    def _body_of(self, operation: Operation[Any]) -> Any:
        if operation.operation_id == "buildStatus":
            self.asleep = self.asleep or bool(self.sleeps and self.sleeps.pop(0))
            self.looks_asleep += self.asleep
            self.builds = [{"status": "building" if self.left else "built"}]
            self.left -= not self.asleep and self.left > 0
        return super()._body_of(operation)


def few_in_a_row(losses: list[bool]) -> bool:
    return f"{'L' * (MOST_LOST + 1)}" not in "".join("L" if lost else "w" for lost in losses)


@example(sleeps=[True], losses=[], building=0, cuts=[], in_triggerer=False)
@example(sleeps=[True, True], losses=[True, False], building=2, cuts=[6], in_triggerer=True)
@given(
    sleeps=st.lists(st.booleans(), max_size=6),
    losses=st.lists(st.booleans(), max_size=8).filter(few_in_a_row),
    building=st.integers(0, 4),
    cuts=st.lists(st.integers(1, 25), max_size=3),
    in_triggerer=st.booleans(),
)
def test_waiting_task_wakes_a_branch_that_sleeps_in_any_history(
    sleeps: list[bool], losses: list[bool], building: int, cuts: list[int], in_triggerer: bool
) -> None:
    tenant = SleepingBranches(sleeps=list(sleeps), losses=list(losses), building=building)
    kind = BranchRunKind(branch_name=BRANCH, deployment_id=1)
    ids: dict[str, Any] = {
        "deployment_id": 1, "branch_name": BRANCH, "was_open": False,
    }  # fmt: skip
    for cut in [*cuts, None]:
        api = api_with(tenant.clock, CONFIG)
        env = RunEnvironment(deadline=tenant.now + 3600, in_triggerer=in_triggerer)
        ids = tenant.run(kind.resume(api, env, ids))
        build = tenant.run(cut_off(kind.follow(api, env, ids), cut))
        if build is not None:
            break
    assert build.status == "built"
    assert len(tenant.woken) <= tenant.looks_asleep
    assert all("dev-mode" in url for url in tenant.woken)
    assert tenant.switched_on == {BRANCH}
    if not any(sleeps):
        assert tenant.woken == []


def cut_off(program: Any, effects: int | None) -> Any:
    """Run a program up to this many effects, then leave it, as a killed worker does. Yields its
    effects; returns None if it was cut off."""
    done = 0
    sent: Any = None
    failure: PlatformError | None = None
    while effects is None or done < effects:
        try:
            effect = program.throw(failure) if failure is not None else program.send(sent)
        except StopIteration as end:
            return end.value
        done += 1
        failure = None
        try:
            sent = yield effect
        except PlatformError as error:
            failure = error
    program.close()
    return None
