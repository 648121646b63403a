"""Files of mapped tasks: no map index replaces the file of another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.operators._files.claims import PathClaim, find_owner
from tests.hypothesis_profiles import examples

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class MappedTask:
    """A mapped task in Airflow: states, XComs and files while its indexes run interleaved.

    What an index does follows `claim_path`: claim, read all claims, then write or give the claim
    up. Airflow deletes the claim of an index when its next try begins, not when it is cleared.
    """

    indexes: int
    clears: int = -1
    states: dict[int, str | None] = field(default_factory=dict)
    claims: dict[int, PathClaim] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    replaced: list[tuple[int, int]] = field(default_factory=list)
    paths: dict[int, str] = field(default_factory=dict)

    def clear(self, paths: dict[int, str]) -> None:
        """Clear these indexes, which get new paths. Their files are nobody's from now on."""
        self.clears += 1
        self.paths |= paths
        for index in paths:
            self.states[index] = None
        self.files = {path: of for path, of in self.files.items() if of not in paths}

    def run(self, index: int) -> Iterator[None]:
        """One try of an index, in steps between which other indexes run."""
        path, clears = self.paths[index], self.clears
        self.states[index] = "running"
        yield
        self.claims.pop(index, None)
        yield
        own = PathClaim(index, path, clears)
        self.claims[index] = own
        yield
        owner = find_owner(own, list(self.claims.values()), self.states.get)
        yield
        if owner is not None:
            self.claims[index] = PathClaim(index, None, clears)
            self.states[index] = "failed"
            return
        self.replaced += [(self.files[path], index)] if path in self.files else []
        self.files[path] = index
        yield
        self.states[index] = "success"


ROUNDS = st.lists(
    st.dictionaries(st.integers(0, 3), st.sampled_from("abcd"), min_size=1), min_size=1, max_size=4
)


@settings(max_examples=examples(400), deadline=None)
@given(rounds=ROUNDS, chosen=st.data())
def test_index_is_refused_only_if_another_index_has_its_path(
    rounds: list[dict[int, str]], chosen: st.DataObject
) -> None:
    task = MappedTask(4)
    for paths in rounds:
        task.clear(paths)
        running = {index: task.run(index) for index in paths}
        while running:
            index = chosen.draw(st.sampled_from(sorted(running)))
            if next(running[index], "ended") == "ended":
                del running[index]
        assert task.replaced == []
        for index in paths:
            shares = any(
                task.paths[index] == path and other != index for other, path in task.paths.items()
            )
            assert shares or task.states[index] == "success"


@pytest.mark.parametrize(
    ("state", "clear_number", "owned"),
    [
        ("success", 0, True),
        ("failed", 0, True),
        ("running", 1, True),
        ("deferred", 1, True),
        ("up_for_retry", 1, True),
        ("running", 0, False),
        ("queued", 0, False),
        (None, 0, False),
        ("removed", 0, False),
        ("removed", 1, False),
    ],
)
def test_claim_from_before_a_clear_counts_only_if_its_index_has_ended(
    state: str | None, clear_number: int, owned: bool
) -> None:
    own, other = PathClaim(0, "/rows.csv", 1), PathClaim(3, "/rows.csv", clear_number)
    owner = find_owner(own, [own, other], lambda _: state)
    assert owner == (other if owned else None)


def test_claims_to_other_paths_and_claims_given_up_do_not_count() -> None:
    own = PathClaim(0, "/rows.csv", 0)
    claims = [PathClaim(1, None, 0), PathClaim(2, "/other.csv", 0)]
    assert find_owner(own, claims, lambda _: "running") is None
