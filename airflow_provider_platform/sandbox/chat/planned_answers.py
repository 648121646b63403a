"""Answers that a test plans for questions, in place of the agent's rules."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PlannedAnswer:
    """The answer to questions that contain ``question``, in any case.

    The agent runs ``sql`` (several queries in order, or None) and answers with ``text`` (default: a
    sentence about the rows, or an apology without ``sql``). With ``error``, it runs nothing, and
    the stream ends with this error. ``branch`` None means each branch, ``times`` None each asking.
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

    def fits(self, question: str, branch: str) -> bool:
        return self.question.lower() in question.lower() and self.branch in (None, branch)


@dataclass
class PlannedAnswers:
    """The planned answers, oldest first, each with the number of askings that are left."""

    _plans: list[tuple[PlannedAnswer, int | None]] = field(default_factory=list)

    def add(self, plan: PlannedAnswer) -> None:
        self._plans.append((plan, plan.times))

    def clear(self) -> None:
        self._plans.clear()

    def take(self, question: str, branch: str) -> PlannedAnswer | None:
        """Return the answer to a question, and count the asking. Answers for some askings come
        first, in their order; then comes the newest answer for each asking."""
        fitting = [one for one in self._plans if one[0].fits(question, branch)]
        for entry in fitting:
            plan, left = entry
            if left is not None:
                self._plans[self._plans.index(entry)] = (plan, left - 1)
                self._plans = [one for one in self._plans if one[1] != 0]
                return plan
        return fitting[-1][0] if fitting else None
