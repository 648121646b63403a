"""Differences that are meant, with the line of the description or change history behind each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.contract.compare import Difference

ANY_PAGED = "any paged"
ANY_INCOMPLETE = "any incomplete"


@dataclass(frozen=True)
class Explanation:
    """Why a difference is meant. As operation, `any paged` stands for each one that is declared to
    answer with pages, `any incomplete` for each one that the document does not know in full."""

    operation: str
    place: str
    problem: str
    because: str
    source: str

    def covers(self, difference: Difference) -> bool:
        """Whether this explains the difference."""
        meant = {
            difference.operation: True,
            ANY_PAGED: difference.paged,
            ANY_INCOMPLETE: difference.incomplete,
        }
        same = (self.place, self.problem) == (difference.place, difference.problem)
        return same and meant.get(self.operation, False)


def known_explanations() -> list[Explanation]:
    """All explanations, from `explanations.json`."""
    text = files(__package__).joinpath("explanations.json").read_text(encoding="utf-8")
    return [Explanation(**entry) for entry in json.loads(text)]


def sort_out(
    differences: Iterable[Difference], explanations: Iterable[Explanation]
) -> tuple[list[Difference], list[Explanation]]:
    """The differences that nothing explains, and the explanations that nothing needed."""
    known = list(explanations)
    needed: set[Explanation] = set()
    findings = []
    for difference in differences:
        matching = [explanation for explanation in known if explanation.covers(difference)]
        needed.update(matching)
        if not matching:
            findings.append(difference)
    return findings, [explanation for explanation in known if explanation not in needed]
