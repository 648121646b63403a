"""Golden questions: what the answers of one night mean. Values only, no I/O.

A suite is a list of questions, each with the SQL of its expected result. Each question is asked,
and `equal_results` compares the result of the agent's SQL with the expected result. That is one
`Asking`, with one of the service's verdicts: `pass`, `fail`, `review` (the agent ran no query) or
`error`. `measured` says whether the asking says anything about the agent. An error of the service
or of the expected SQL does not, and neither does an expected result without a value, so it is
never a reason for red.

An agent that is right in 95 of 100 nights gives a suite of 40 questions a failure in 87 % of the
nights. So a question that passed before and fails now is asked again, at most `confirm` times:

    asked first   asked again      stability
    pass                           stable
    fail          one pass         flaky         (counts as passed)
    fail          all fail         regression
    fail          not measured     (open: the night is not measured)
    fail          failed before    stable        (a known failure; not asked again)
    fail          never passed     new_failure   (not asked again)

"Before" is the `Baseline`: of each question the answer of the last green run, which the task reads
from its last DAG run. If a branch is evaluated, "before" is production's answer of the same task,
and production is asked again too if both are wrong. A question that production answered and the
branch did not is open too: the branch may have broken it.

If a question that was right before is wrong now, the SQL of the answer before runs once more on
today's build. `cause_of` reads its result:

    right today                                       agent
    wrong today, and one difference from before       model, rollup or data
    wrong today, and several differences              unclear
    wrong today, and no difference                    unknown
    it was not right before, or is new                unknown
    not measured                                      service

The differences: another build of the data model (model), other pre-aggregations (rollup), other
rows of the expected SQL (data). If the SQL before cannot run again, other SQL of the agent is one
difference more (agent).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from airflow_provider_platform.client.argument_rules import is_absent
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.redaction import quote_service

Side = Literal["production", "branch"]
Verdict = Literal["pass", "fail", "review", "error"]
Stability = Literal["stable", "flaky", "regression", "new_failure"]
Cause = Literal["agent", "model", "data", "rollup", "unclear", "service", "unknown"]
Status = Literal["green", "red", "not_measured", "no_baseline"]

MAX_QUESTIONS = 200
"""A larger suite is refused: its state would not fit into Airflow's task state store."""
NIGHTS = 14
"""First verdicts of a question that a baseline keeps: the older half is compared with the newer."""
_ROUNDING = 1e-9
_CONFIDENCE = 1.96
"""Standard deviations of a 95 % interval."""


# The suite.


@dataclass(frozen=True)
class Question:
    """One question, and the SQL of its expected result. `allow_empty`: whether a result without a
    value is a right one."""

    name: str
    question: str
    sql: str
    allow_empty: bool = False

    @property
    def mark(self) -> str:
        """Eight characters that name the question by its text. Digits do not count, so that a
        question with a date is the same every night; the expected SQL may be corrected."""
        return sha256(re.sub(r"\d+", "0", self.question).encode()).hexdigest()[:8]


def read_suite(documents: Sequence[Any], certified_queries: Mapping[str, str]) -> list[Question]:
    """Return the questions of documents in the service's form: `{"eval_questions": [{"name",
    "question", "sql" or "certifiedQuery"}]}`, or only the list. `allow_empty` is our own field.
    Other fields are ignored.

    `certified_queries` has the SQL of certified queries by name. Raises PlatformInputError.
    """
    listed: list[Any] = []
    for document in documents:
        found = document.get("eval_questions") if isinstance(document, Mapping) else document
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise _refused("must be a list, or an object with the list eval_questions")
        listed += found
    suite = [_question(item, certified_queries) for item in listed]
    if not 1 <= len(suite) <= MAX_QUESTIONS:
        raise _refused(f"must be 1 to {MAX_QUESTIONS}; these are {len(suite)}")
    twice = [name for name, times in Counter(one.name for one in suite).items() if times > 1]
    if twice:
        raise _refused(f"must have different names; used twice: {', '.join(twice)}")
    return suite


def _question(item: Any, certified_queries: Mapping[str, str]) -> Question:
    names = ("name", "question", "sql", "certifiedQuery")
    fields = item if isinstance(item, Mapping) else {}
    given = {name: fields[name] for name in names if fields.get(name) is not None}
    named = quote_service(str(given.get("name") or given.get("question") or "without a name"))
    are_texts = all(isinstance(text, str) and not is_absent(text) for text in given.values())
    if not are_texts or len(given) != 3 or not {"name", "question"} <= given.keys():
        raise _refused(
            "must have name, question, and either sql or certifiedQuery, each a non-empty string; "
            f"question {named} has not"
        )
    sql = given.get("sql") or certified_queries.get(given["certifiedQuery"])
    if not isinstance(sql, str) or not sql.strip():
        raise _refused(
            f"must name known certified queries; question {named} names "
            f"{given['certifiedQuery']!r}. The service has no operation that reads one, so give "
            "its SQL in certified_queries"
        )
    allow_empty = fields.get("allow_empty", False)
    if not isinstance(allow_empty, bool):
        raise _refused(f"must have true or false in allow_empty; question {named} has not")
    return Question(given["name"], given["question"], sql, allow_empty)


def _refused(rule: str) -> PlatformInputError:
    return PlatformInputError(f"Nothing was sent: questions {rule}.", field="questions")


# What was asked.


class Asking(BaseModel):
    """The outcome of asking one question once. `reason` is one of the service's reasons,
    `difference` says it in words. `sql` can be cut, so `sql_digest` names the whole SQL.
    `expected_digest` names the rows of the expected SQL, `build` the commit from which the data
    model of this side was built."""

    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    measured: bool = True
    reason: str | None = None
    difference: str | None = None
    sql: str | None = None
    sql_digest: str | None = None
    expected_digest: str | None = None
    rollups: tuple[str, ...] = ()
    build: str | None = None
    rows: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    chat_id: str | None = None

    @property
    def passed(self) -> bool:
        return self.verdict == "pass"

    @property
    def whole_sql(self) -> str | None:
        """The agent's SQL; None if it was cut."""
        return self.sql if self.sql and sql_digest(self.sql) == self.sql_digest else None

    @property
    def failed(self) -> bool:
        """Whether the agent's result is known to be wrong or missing."""
        return self.measured and not self.passed


def sql_digest(sql: str) -> str:
    """Return 16 characters that name SQL without differences of spaces, which mean nothing outside
    of strings."""
    normal = " ".join(sql.split()).rstrip("; ")
    return sha256(normal.encode()).hexdigest()[:16]


class Key(NamedTuple):
    """A question on one side."""

    name: str
    side: Side = "production"

    def __str__(self) -> str:
        return f"{self.side}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the key that `str` wrote."""
        side, name = text.split(":", 1)
        return cls(name, "branch" if side == "branch" else "production")


Askings = Mapping[Key, Sequence[Asking]]
"""The askings of each question, in their order."""


# The answers before.


class Baseline(BaseModel):
    """What the next night is compared with: by the names of questions, the answers of the last
    green night, the first verdicts of the last nights, the newest last (`P` or `F`), and the marks
    of the questions. `owner` names whose answers these are: a connection, a deployment, an agent
    and a user. `is_dated`: whether the DAG run that left it has a logical date."""

    answers: dict[str, Asking] = {}
    firsts: dict[str, str] = {}
    marks: dict[str, str] = {}
    owner: str = ""
    is_dated: bool = True

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Return the baseline that `to_json` wrote. Anything else is no baseline."""
        try:
            return cls.model_validate(stored)
        except ValidationError:
            return cls()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def of_suite(
        self, suite: Sequence[Question], owner: str, *, is_dated: bool = True
    ) -> tuple[Baseline, str | None]:
        """Return what of this baseline belongs to a suite of this owner, and a sentence about what
        does not. (A mapped task reads what the task at its place in the list has left.)"""
        own = Baseline(owner=owner, is_dated=is_dated)
        if not self.answers and not self.firsts:
            return own, None
        if self.owner != owner:
            return own, (
                "The last run of this task asked with another connection, deployment, agent or "
                "user. Its answers are no baseline of this run."
            )
        marks = {one.name: one.mark for one in suite}
        others = {name for name, mark in self.marks.items() if marks.get(name, mark) != mark}
        said = (
            f"The last run of this task asked other questions under these names, so they have no "
            f"baseline: {', '.join(quote_service(name) for name in sorted(others)[:5])}."
        )
        kept: dict[str, Any] = {
            field: {name: one for name, one in getattr(self, field).items() if name not in others}
            for field in ("answers", "firsts", "marks")
        }
        return own.model_copy(update=kept), said if others else None

    def with_questions_of(self, other: Baseline, suite: Sequence[Question]) -> Baseline:
        """Return this baseline with what the other one has of the suite's questions besides."""
        names = {one.name for one in suite}
        whole: dict[str, Any] = {
            field: {
                **{name: one for name, one in getattr(other, field).items() if name in names},
                **getattr(self, field),
            }
            for field in ("answers", "firsts", "marks")
        }
        return self.model_copy(update=whole)

    def after(self, judged: Sequence[Judged], status: Status) -> Baseline:
        """Return the baseline for the next night. Answers change only if this night is not red and
        enough was measured; the first verdicts are kept always."""
        unused = {"difference": None, "chat_id": None}
        finals = {
            one.name: one.final.model_copy(update=unused)
            for one in judged
            if one.final and one.final.measured
        }
        if status in ("red", "not_measured"):
            finals = {}
        firsts = {
            one.name: (self.firsts.get(one.name, "") + "FP"[one.askings[0].passed])[-NIGHTS:]
            for one in judged
            if one.askings and one.askings[0].measured
        }
        # A question may be left out for a night, so the others are kept too.
        answers = dict(islice({**finals, **self.answers, **finals}.items(), MAX_QUESTIONS))
        firsts = dict(islice({**firsts, **self.firsts, **firsts}.items(), MAX_QUESTIONS))
        marks = {**self.marks, **{one.name: one.mark for one in judged}}
        known = {name: mark for name, mark in marks.items() if name in answers or name in firsts}
        update = {"answers": answers, "firsts": firsts, "marks": known}
        return self.model_copy(update=update)


# What to ask next, and what it means.


def next_keys(
    suite: Sequence[Question],
    askings: Askings,
    baseline: Baseline,
    *,
    on_branch: bool,
    confirm: int,
) -> list[Key]:
    """Return the questions to ask next, in order: first each question once (on a branch: also on
    production), then those whose failure must be confirmed. If branch and production are both
    wrong, production may be wrong by chance, so production is asked again."""
    sides: tuple[Side, ...] = ("branch", "production") if on_branch else ("production",)
    firsts = [Key(one.name, side) for one in suite for side in sides]
    missing = [key for key in firsts if not askings.get(key)]
    if missing:
        return missing
    again = []
    for one in suite:
        key, other = Key(one.name, sides[0]), Key(one.name, sides[-1])
        before = before_of(one.name, askings, baseline, on_branch=on_branch)
        wrong = {each for each in (key, other) if all(asked.failed for asked in askings[each])}
        meant = key if before and before.passed else other if on_branch else None
        if key in wrong and meant in wrong and len(askings[meant]) <= confirm:
            again.append(meant)
    return again


def before_of(name: str, askings: Askings, baseline: Baseline, *, on_branch: bool) -> Asking | None:
    """Return the answer before: of the baseline, or of production if a branch is evaluated."""
    if not on_branch:
        return baseline.answers.get(name)
    others = [one for one in askings.get(Key(name), ()) if one.measured]
    return next((one for one in others if one.passed), others[-1] if others else None)


@dataclass(frozen=True)
class Judged:
    """What the askings of one question mean together. `stability` is None if the askings do not
    say it, `cause` (why it failed) is None if it passed. `on_branch`: whether `before` is
    production's answer. `before_today` is the result of the SQL before on today's build."""

    name: str
    question: str
    expected_sql: str
    askings: tuple[Asking, ...]
    before: Asking | None
    stability: Stability | None
    cause: Cause | None = None
    on_branch: bool = False
    before_today: Asking | None = None
    mark: str = ""

    @property
    def final(self) -> Asking | None:
        """The asking that counts: one that passed, else the last measured one, else the last."""
        measured = [asking for asking in self.askings if asking.measured] or self.askings
        return next((one for one in measured if one.passed), measured[-1] if measured else None)

    @property
    def measured(self) -> bool:
        return self.final is not None and self.final.measured

    @property
    def is_open(self) -> bool:
        """Whether the question is wrong, and it is not known whether it was right before or fails
        again."""
        return self.measured and self.stability is None

    @property
    def is_lost_on_branch(self) -> bool:
        """Whether production answered the question and the branch did not."""
        return self.on_branch and not self.measured and self.before is not None

    @property
    def passed(self) -> bool:
        return self.final is not None and self.final.passed

    def to_json(self) -> dict[str, Any]:
        """Return one question of the task's result, as plain JSON."""
        final = self.final or Asking(verdict="error", measured=False, reason="not asked")
        tokens = [one.tokens for one in self.askings if one.tokens is not None]
        return {
            "name": self.name,
            "question": self.question,
            "verdict": final.verdict,
            "stability": self.stability,
            "cause": self.cause,
            "reason": final.reason,
            "difference": final.difference,
            "sql": final.sql,
            "expected_sql": self.expected_sql,
            "sql_before": self.before and self.before.sql,
            "rows": final.rows,
            "expected_digest": final.expected_digest,
            "asked": len(self.askings),
            "tokens": sum(tokens) if tokens else None,
            "seconds": round(sum(one.seconds or 0.0 for one in self.askings), 1),
            "chat_id": final.chat_id,
        }


def judge(
    suite: Sequence[Question],
    askings: Askings,
    baseline: Baseline,
    *,
    on_branch: bool,
    confirm: int,
    before_today: Mapping[str, Asking] | None = None,
) -> list[Judged]:
    """Return what the askings of each question mean. `before_today` has, by the names of questions
    that became wrong, the results of their SQL before on today's build."""
    judged = []
    for one in suite:
        before = before_of(one.name, askings, baseline, on_branch=on_branch)
        asked = tuple(askings.get(Key(one.name, "branch" if on_branch else "production"), ()))
        stability = _stability(asked, before, confirm)
        if on_branch and not (asked and asked[0].passed):
            tries = sum(other.failed for other in askings.get(Key(one.name), ()))
            if before is None or (not before.passed and tries <= confirm):
                stability = None  # production may be right
        found = Judged(
            one.name,
            one.question,
            one.sql,
            asked,
            before,
            stability,
            on_branch=on_branch,
            before_today=(before_today or {}).get(one.name),
            mark=one.mark,
        )
        judged.append(found if found.passed else replace(found, cause=cause_of(found)))
    return judged


def _stability(asked: Sequence[Asking], before: Asking | None, confirm: int) -> Stability | None:
    if not asked or not (any(one.passed for one in asked) or all(one.measured for one in asked)):
        return None
    if asked[0].passed:
        return "stable"
    if any(one.passed for one in asked):
        return "flaky"
    if before is None:
        return "new_failure"
    if not before.passed:
        return "stable"
    return "regression" if len(asked) > confirm else None  # a limit ended the asking


def cause_of(judged: Judged) -> Cause:
    """Return why a question failed, by the table at the top of this module."""
    final, before, again = judged.final, judged.before, judged.before_today
    if final is None or not final.measured:
        return "service"
    if before is None or not before.passed:
        return "unknown"
    same_sql = final.sql_digest == before.sql_digest
    if again is not None and again.passed:
        return "unclear" if same_sql else "agent"
    today = again or final
    differences: dict[Cause, bool] = {
        "agent": again is None and not same_sql,
        "model": None not in (today.build, before.build) and today.build != before.build,
        "rollup": set(today.rollups) != set(before.rollups),
        "data": today.expected_digest != before.expected_digest,
    }
    found = [cause for cause, differs in differences.items() if differs]
    return "unknown" if not found else found[0] if len(found) == 1 else "unclear"


# The gate.


@dataclass(frozen=True)
class Gate:
    """When a night is red. `threshold` is the least share of passed questions, `min_measured` the
    least share of measured ones, both from 0 to 1."""

    threshold: float | None = None
    no_regression: bool = True
    min_measured: float = 0.8

    def status(self, judged: Sequence[Judged]) -> tuple[Status, str]:
        """Return the status of a night, and why in words."""
        measured = [one for one in judged if one.measured]
        passed = sum(one.passed for one in measured)
        counted = f"{len(measured)} of {len(judged)} questions were measured"
        if not measured or len(measured) / len(judged) < self.min_measured - _ROUNDING:
            return "not_measured", f"{counted}, and min_measured is {self.min_measured:g}"
        worse = [one.name for one in measured if one.stability == "regression"]
        if self.no_regression and worse:
            return "red", f"{len(worse)} passed before and fail now: {_named(worse)}"
        lost = [one.name for one in judged if one.is_lost_on_branch]
        if lost:
            answered = f"production answered {len(lost)} that the branch did not"
            return "not_measured", f"{answered}: {_named(lost)}"
        unclear = [one.name for one in judged if one.is_open]
        if self.no_regression and unclear:
            return (
                "not_measured",
                f"{len(unclear)} failed and were not confirmed: {_named(unclear)}",
            )
        if self.threshold is not None and passed / len(measured) < self.threshold - _ROUNDING:
            return "red", f"{passed} of {len(measured)} passed, and threshold is {self.threshold:g}"
        if self.threshold is None and not self.no_regression:
            return "green", f"{counted}; neither threshold nor no_regression is set"
        if self.threshold is None and all(one.before is None for one in judged):
            return "no_baseline", "no earlier answer is known, so this run is the first baseline"
        return "green", counted


def first_unmeasured(judged: Sequence[Judged]) -> str:
    """Return a sentence, after a space, about the first question that was not measured; an empty
    string if there is none."""
    one = next((one.to_json() for one in judged if not one.measured), None)
    if one is None:
        return ""
    said = one["difference"] or f"{one['reason']}."
    return f" Not measured: {quote_service(one['name'])}: {quote_service(said)}"


def _named(names: Sequence[str]) -> str:
    return ", ".join(quote_service(name) for name in names[:5])


def wilson(passed: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson): 38 of 40 are 83.5 to 98.6 %."""
    if not total:
        return 0.0, 1.0
    z, share = _CONFIDENCE, passed / total
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    middle, scale = share + z * z / (2 * total), 1 + z * z / total
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def falling(judged: Iterable[Judged], baseline: Baseline) -> list[str]:
    """Return the questions whose first answers became worse over the last nights: the interval of
    the newer half lies below that of the older half. `baseline` is that of the next night."""
    names = []
    for one in judged:
        firsts = baseline.firsts.get(one.name, "")
        older, newer = firsts[: len(firsts) // 2], firsts[len(firsts) // 2 :]
        best = wilson(newer.count("P"), len(newer))[1]
        if older and best < wilson(older.count("P"), len(older))[0]:
            names.append(one.name)
    return names


def estimate(suite: Sequence[Question], baseline: Baseline, *, on_branch: bool) -> int | None:
    """Return how many tokens asking each question once may cost, by the last run; None if no cost
    is known. A new question costs as much as the others on average."""
    answers = [baseline.answers.get(one.name) for one in suite]
    known = [answer.tokens for answer in answers if answer and answer.tokens is not None]
    if not known:
        return None
    return round(sum(known) / len(known) * len(suite) * (2 if on_branch else 1))


def counts(judged: Sequence[Judged]) -> dict[str, int]:
    """Return how many questions there are of each kind."""
    measured = [one for one in judged if one.measured]
    kinds = Counter(one.stability for one in measured)
    return {
        "total": len(judged),
        "measured": len(measured),
        "passed": sum(one.passed for one in measured),
        "flaky": kinds["flaky"],
        "regressions": kinds["regression"],
        "new_failures": kinds["new_failure"],
    }
