"""Differences that are meant, with the line of the description or change history behind each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.contract.compare import Difference

ANY = "*"


@dataclass(frozen=True)
class Explanation:
    """Why a difference is meant; `*` as operation stands for every operation."""

    operation: str
    place: str
    problem: str
    because: str
    source: str

    def covers(self, difference: Difference) -> bool:
        """Whether this explains the difference."""
        return self.operation in (ANY, difference.operation) and (self.place, self.problem) == (
            difference.place,
            difference.problem,
        )


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
