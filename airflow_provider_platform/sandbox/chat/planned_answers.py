"""Answers that a test plans for questions, in place of the agent's rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class PlannedAnswer:
    """The answer to questions that contain ``question``, in any case.

    The agent runs ``sql`` (several queries in order, or None) and answers with ``text`` (default: a
    sentence about the rows, or an apology without ``sql``). With ``error``, it runs nothing, and
    the stream ends with this error. ``branch`` None means each branch. ``times`` counts the askings
    that are left; None means each asking.
    """

    question: str
    sql: str | list[str] | None = None
    text: str | None = None
    error: str | None = None
    branch: str | None = None
    times: int | None = 1

    def __post_init__(self) -> None:
        if self.times is not None and self.times < 1:
            raise ValueError("times must be at least 1, or null for each asking")
        if self.error is not None and (self.sql is not None or self.text is not None):
            raise ValueError("error excludes sql and text")

    @property
    def queries(self) -> list[str]:
        return [self.sql] if isinstance(self.sql, str) else self.sql or []


class PlannedAnswers(list[PlannedAnswer]):
    """The planned answers, oldest first."""

    def take(self, question: str, branch: str) -> PlannedAnswer | None:
        """Return the newest answer to a question that has askings left, and count this one."""
        for plan in reversed(self):
            fits = plan.question.lower() in question.lower() and plan.branch in (None, branch)
            if fits and plan.times != 0:
                if plan.times is not None:
                    plan.times -= 1
                return plan
        return None
