"""`PlatformEvaluationOperator`: ask golden questions, compare the answers, and fail if they became
worse."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import EVALUATION_TIMEOUT
from airflow_provider_platform.client.errors import (
    EvaluationFailedError,
    EvaluationNotMeasuredError,
    EvaluationRunFailedError,
    PlatformInputError,
)
from airflow_provider_platform.client.redaction import quote_service, shortened
from airflow_provider_platform.links import AgentLink, BranchLink, all_links
from airflow_provider_platform.operators._arguments import session_settings
from airflow_provider_platform.operators._base import (
    DeploymentOperator,
    airflow_errors,
    airflow_traces,
)
from airflow_provider_platform.operators._output_arguments import optional_folder, storage_path
from airflow_provider_platform.operators._remote_run import StoppableRunOperator
from airflow_provider_platform.operators._trace import add_span
from airflow_provider_platform.operators.chat import add_usage

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta

    from airflow_provider_platform._airflow import Context, ObjectStoragePath
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.errors import PlatformError
    from airflow_provider_platform.operators._attempt import Attempt
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.evaluations.golden_questions import (
        Asking,
        Baseline,
        Judged,
        Key,
        Question,
    )
    from airflow_provider_platform.resources.run_kind import Ids

BASELINE_KEY = "baseline"
"""The XCom in which each run leaves the answers for the next one."""
MAX_RESULT_BYTES = 256 * 1024
"""Of the questions in the result: their texts are shortened to what fits."""
SHOWN = 20
"""Questions that the log and a message show."""
SHARE = partial(arguments.or_none(arguments.number), minimum=0, maximum=1)


def questions_or_files(name: str, value: Any) -> list[Any] | None:
    """Return a list of questions or of paths of YAML files; None if there are none."""
    parsed = arguments.optional(value)
    if isinstance(parsed, str) and not parsed.lstrip().startswith("["):
        return [parsed]
    return arguments.sequence(name, parsed)


def known_questions(questions: list[Any] | None, certified_queries: dict[str, str] | None) -> None:
    """A rule: a list of questions has the service's form. Files are read when the task runs."""
    if questions is not None and not _are_paths(questions):
        from airflow_provider_platform.resources.evaluations.golden_questions import read_suite

        read_suite([questions], certified_queries or {})


def questions_or_service(
    questions: list[Any] | None,
    question_file: str | None,
    agent_id: str | None,
    branch_name: str | None,
    threshold: float | None,
    no_regression: bool,
) -> None:
    """A rule: each kind of evaluation has arguments of its own, and that of a branch has a gate."""
    if branch_name and threshold is None and not no_regression:
        raise ValueError(
            "an evaluation of a branch needs a gate: set threshold, or leave out no_regression"
        )
    if questions is not None and question_file:
        raise ValueError(
            "question_file is for evaluations by the service, which asks the questions of the "
            "deployment. Leave it out, or leave out questions"
        )
    if questions is None and branch_name and threshold is None:
        raise ValueError(
            "an evaluation of a branch by the service has no earlier answers to be compared with: "
            "set threshold, or give questions"
        )
    if questions is None and agent_id:
        raise ValueError("without questions the service asks an agent by its name: use agent")


class PlatformEvaluationOperator(DeploymentOperator, StoppableRunOperator):
    """Ask the agent questions whose results you know, and fail if its answers became worse.

    Use it to know when an agent, its data model or its data become worse. To compare numbers
    without an agent, use `PlatformCompareOperator`. The page Trusting an agent has the rules, the
    table of verdicts, the costs and what to do.

    Without `questions`, the service's own evaluations API (preview) asks and grades the questions
    of the deployment's repository. It can neither ask one question again nor be stopped. The task
    then ignores `session_settings`, `confirm`, `parallel`, `max_tokens` and `max_seconds`.

    Returns `{"status", "reason", "counts", "share", "interval", "branch_name", "tokens",
    "uncounted", "seconds", "questions", "reports", "answer", "columns", "rows", "row_count"}`.
    `status` is green or no_baseline (nothing to compare with). If it is red, the task fails. If it
    is not_measured, the task fails and is retried. XCom has the result in both cases. A question
    has `name`, `question`, `verdict` (pass, fail, review, error), `stability` (stable, flaky,
    regression, new_failure, or None if it is not known), `cause` (agent, model, data, rollup,
    unclear, service, unknown, or None if it passed), `reason`, `difference`, `sql`, `expected_sql`,
    `sql_before`, `rows`, `expected_digest`, `asked`, `tokens`, `seconds` and `chat_id`. `answer`,
    `columns` and `rows` are the text and the table of a message; the table has at most 20 of
    `row_count` questions, those that did not pass first. `uncounted` is the number of askings whose
    tokens the platform did not report. With `questions`, the XCom `total_usage` has the tokens of
    all tries since the last clear (without the record of `durable`: of this try), even if the task
    fails.

    :param questions: a list of questions `{"name", "question", "sql" or "certifiedQuery"}`, or
        paths of YAML files in the service's form (`eval_questions`). With `"allow_empty": true`,
        an expected result without a row or a value is right
    :param certified_queries: the SQL of certified queries by name; the API does not return them
    :param agent: another agent of the connection's deployment to ask, by its name in the platform.
        For evaluations by the service: its name in the data model; by default the automatic agent
    :param agent_id: another agent of the account to ask, by its id
    :param session_settings: the user of the chats; replaces the connection's settings as a whole
    :param branch_name: a branch to evaluate beside production. A question that passes on production
        and fails on the branch is a regression. For the service's evaluations: the branch to
        evaluate (default: production); needs `threshold`
    :param question_file: for evaluations by the service: a file below `agents/`, such as
        `eval_questions/revenue.yml`; by default all questions
    :param confirm: how often a question that passed before and fails now is asked again at most,
        from 0 to 10
    :param threshold: the least share of passed questions among the measured ones, from 0 to 1
    :param no_regression: fail if a question that passed before fails in all askings. If False, no
        wrong answer is asked again, and on a branch `threshold` must be set
    :param min_measured: the least share of questions that must be measured, from 0 to 1
    :param max_tokens: how many tokens all questions may use. If the estimate by an earlier run is
        higher, nothing is sent. After this many tokens, no further question is asked, also not by a
        retry
    :param max_seconds: after this many seconds from the first try, no further question is asked,
        also not by a retry
    :param parallel: how many questions run at the same time, from 1 to 20
    :param reset_baseline: forget the earlier runs: this run becomes the first baseline, unless it
        fails or has a `branch_name`
    :param output_path: a folder for `questions.jsonl`, `junit.xml` and `evaluation.md`
    :param timeout: seconds (or a timedelta) of wall time of each try
    :param cancel_on_kill: stop the questions that run if the task is stopped. At the end of
        `timeout` they are stopped also with False
    """

    template_fields_renderers: ClassVar[dict[str, str]] = {
        "questions": "json",
        "session_settings": "json",
    }
    operator_extra_links = all_links(AgentLink, BranchLink)
    checks: ClassVar[Checks] = {
        "questions": questions_or_files,
        "certified_queries": arguments.mapping,
        "agent": arguments.optional_text,
        "agent_id": arguments.optional_agent,
        "session_settings": session_settings,
        "branch_name": arguments.optional_text,
        "question_file": arguments.optional_text,
        "confirm": partial(arguments.whole_number, minimum=0, maximum=10),
        "threshold": SHARE,
        "no_regression": arguments.boolean,
        "min_measured": SHARE,
        "max_tokens": partial(arguments.or_none(arguments.whole_number), minimum=1),
        "max_seconds": arguments.or_none(arguments.seconds),
        "parallel": partial(arguments.whole_number, minimum=1, maximum=20),
        "reset_baseline": arguments.boolean,
        "output_path": optional_folder,
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("questions", "certified_queries"), known_questions),
        (
            (
                "questions",
                "question_file",
                "agent_id",
                "branch_name",
                "threshold",
                "no_regression",
            ),
            questions_or_service,
        ),
        (("agent", "agent_id"), arguments.at_most_one),
    )

    def __init__(
        self,
        *,
        questions: Sequence[Mapping[str, Any] | str] | str | None = None,
        certified_queries: Mapping[str, str] | None = None,
        agent: str | None = None,
        agent_id: int | str | None = None,
        session_settings: dict[str, Any] | None = None,
        branch_name: str | None = None,
        question_file: str | None = None,
        confirm: int | str = 2,
        threshold: float | str | None = None,
        no_regression: bool | str = True,
        min_measured: float | str = 0.8,
        max_tokens: int | str | None = None,
        max_seconds: float | timedelta | str | None = None,
        parallel: int | str = 4,
        reset_baseline: bool | str = False,
        output_path: str | os.PathLike[str] | ObjectStoragePath | None = None,
        timeout: float | timedelta = EVALUATION_TIMEOUT,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, **kwargs)
        self.questions: Any = questions
        self.certified_queries: Any = certified_queries
        self.agent = agent
        self.agent_id: Any = agent_id
        self.session_settings = session_settings
        self.branch_name = branch_name
        self.question_file = question_file
        self.confirm: Any = confirm
        self.threshold: Any = threshold
        self.no_regression = no_regression
        self.min_measured: Any = min_measured
        self.max_tokens: Any = max_tokens
        self.max_seconds: Any = max_seconds
        self.parallel: Any = parallel
        self.reset_baseline = reset_baseline
        self.output_path: Any = output_path
        self._baseline: Baseline | None = None
        self._keeps_baseline = True
        self._suite: tuple[Question, ...] = ()
        self.validate_known_arguments()

    @property
    def kind_path(self) -> str:
        """By whom the questions are asked."""
        if self.questions is None:
            return "evaluations.service.ServiceEvaluationRunKind"
        return "evaluations.run.EvaluationRunKind"

    def derived_arguments(self) -> dict[str, Any]:
        if self.questions is None:
            return {}
        from airflow_provider_platform.resources.evaluations.golden_questions import Baseline

        return {
            "suite": self._suite,
            "baseline": self._baseline or Baseline(),
            "confirm": self._confirm,
        }

    @property
    def _confirm(self) -> int:
        """How often a question is asked again: only a regression needs this, and the service cannot
        ask again."""
        is_needed = self.questions is not None and self.no_regression
        return int(self.confirm) if is_needed else 0

    @contextmanager
    def _opened(self, context: Context, ids: Ids | None = None) -> Iterator[Attempt]:
        """Read the questions and the earlier answers, which the kind of the run needs."""
        from airflow_provider_platform.resources.evaluations.golden_questions import read_suite

        with airflow_errors():
            self._coerce(context)
            given = self.questions
            if given is not None:
                with self.named_errors():
                    documents = [*map(_read_yaml, given)] if _are_paths(given) else [given]
                    self._suite = tuple(read_suite(documents, self.certified_queries or {}))
            self._baseline = self._read_baseline(context)
        with super()._opened(context, ids) as attempt:
            self._baseline = self._own_baseline(attempt, self._baseline, self._suite)
            attempt.kind = self.run_kind()  # it compares with the baseline
            yield attempt

    def _read_baseline(self, context: Context) -> Baseline:
        """Return what the last run of this task left. Airflow finds it by the logical date, so a
        run without one leaves nothing for runs with one. Raises PlatformInputError."""
        from airflow_provider_platform.resources.evaluations.golden_questions import Baseline

        ti: Any = context["ti"]
        pull = partial(ti.xcom_pull, task_ids=ti.task_id, key=BASELINE_KEY)
        pull = partial(pull, map_indexes=ti.map_index)
        run: Any = context.get("dag_run")
        is_dated = getattr(run, "logical_date", None) is not None
        found, none = Baseline.from_json(pull(include_prior_dates=True)), Baseline()
        self._keeps_baseline = is_dated or found == none or not found.is_dated
        if not self._keeps_baseline and self.reset_baseline:
            raise PlatformInputError(
                "Nothing was asked: this DAG run has no logical date, but earlier runs have one. "
                "The next run would not find its baseline. Trigger the DAG with a logical date.",
                field="reset_baseline",
            )
        if is_dated and not found.is_dated:  # some databases sort a run without a date first
            before = ti.get_previous_dagrun()
            dated = Baseline.from_json(pull(run_id=before.run_id) if before else None)
            found = found if dated == none else dated
        found = none if self.reset_baseline else found
        return found.model_copy(update={"is_dated": is_dated})

    def _own_baseline(
        self, attempt: Attempt, found: Baseline, suite: Sequence[Question]
    ) -> Baseline:
        """Return what of the baselines belongs to this connection, deployment, agent, user and
        suite."""
        kind: Any = attempt.kind
        owner = kind.baseline_owner(attempt.config)
        kept, said = found.of_suite(suite, owner, is_dated=found.is_dated)
        for other in self._of_all_places(attempt.context):
            kept = kept.with_questions_of(other.of_suite(suite, owner)[0], suite)
        if said and not (suite and kept.answers.keys() >= {one.name for one in suite}):
            self.log.warning("%s", said)
        return kept

    def _of_all_places(self, context: Context) -> list[Baseline]:
        """Return what all instances of this mapped task left in the DAG run before: a suite that is
        put in front of the list moves the others to other places."""
        from airflow_provider_platform.resources.evaluations.golden_questions import Baseline

        ti: Any = context["ti"]
        before = ti.get_previous_dagrun() if ti.map_index >= 0 and not self.reset_baseline else None
        if before is None:
            return []
        left = ti.xcom_pull(task_ids=ti.task_id, key=BASELINE_KEY, run_id=before.run_id)
        return [Baseline.from_json(one) for one in (left if isinstance(left, list) else [left])]

    def _hear(self, attempt: Attempt, event: object) -> None:
        from airflow_provider_platform.resources.evaluations.run import QuestionOver

        if isinstance(event, QuestionOver):
            if airflow_traces():
                add_span(attempt, event.ids, event.usage, event.error)
        else:
            super()._hear(attempt, event)

    def check_before(self, attempt: Attempt) -> None:
        if self.output_path is not None:
            from airflow_provider_platform.files.whole_files import check_place

            check_place("output_path", storage_path("output_path", self.output_path) / "junit.xml")

    def finish(self, attempt: Attempt, ids: Ids, outcome: Any) -> dict[str, Any]:
        """Judge the night: store the baseline for the next one, write the reports, and return the
        result. Raises EvaluationFailedError, EvaluationNotMeasuredError."""
        from airflow_provider_platform.hooks.lineage import report_queries
        from airflow_provider_platform.messages.message import log_lines
        from airflow_provider_platform.resources.evaluations.golden_questions import (
            Asking,
            Baseline,
            Gate,
            Key,
            falling,
            first_unmeasured,
            judge,
        )

        self._count_tokens(attempt, ids)
        outcome = self.read(attempt, ids, outcome)
        before = self._baseline or Baseline()
        by_service = self.questions is None
        today: dict[str, Asking] = {}
        if by_service:
            suite, askings, unnamed = _of_service(outcome["items"])
            if unnamed:
                self.log.warning("The service named no question of %s results.", unnamed)
            # An evaluation of a branch by the service has nothing to be compared with.
            before = Baseline() if self.branch_name else self._own_baseline(attempt, before, suite)
        else:
            suite = self._suite
            askings = {
                Key.parse(text): [Asking(**one) for one in asked]
                for text, asked in outcome["askings"].items()
            }
            today = {name: Asking(**one) for name, one in outcome["before_today"].items()}
        judged = judge(
            suite,
            askings,
            before,
            on_branch=self.branch_name is not None and not by_service,
            confirm=self._confirm,
            before_today=today,
        )
        gate = Gate(self.threshold, bool(self.no_regression), float(self.min_measured))
        status, reason = gate.status(judged)
        missing = outcome.get("missing")
        if by_service and outcome["status"] == "failed":
            status, reason = "not_measured", "the service's evaluation failed"
        elif missing:
            status, reason = "not_measured", missing
        since = float(outcome.get("submitted_at") or ids["submitted_at"])
        result = {
            **self._result(judged, status, reason),
            "tokens": outcome.get("tokens"),
            "uncounted": outcome.get("uncounted"),
            "seconds": round(attempt.now - since, 1),
        }
        if not by_service:
            texts = [
                text
                for one in judged
                if (final := one.final) is not None and final.verdict != "error"
                for text in (one.expected_sql, final.whole_sql or "")
            ]
            report_queries(self.hook(), attempt.client.secrets.redact_data(texts))
        if self.output_path is not None:
            result["reports"] = self._write_reports(result)
        result["questions"] = _bounded(result["questions"])
        ti: Any = attempt.context["ti"]
        # Answers of a branch are no earlier answers of production.
        if self.branch_name is None and self._keeps_baseline:
            baseline = before.after(judged, status)
            ti.xcom_push(key=BASELINE_KEY, value=baseline.to_json())
            for name in falling(judged, baseline):
                self.log.warning(
                    "Question %s passes less often than in earlier nights.", quote_service(name)
                )
        for line in log_lines(result):
            self.log.info("%s", line)
        if not self._keeps_baseline:
            self.log.warning(
                "This DAG run has no logical date, and earlier runs have one. Its answers are no "
                "baseline of the next run."
            )
        if status == "no_baseline" or (self.threshold is None and not self.no_regression):
            self.log.warning("%s", result["answer"])
        if status in ("red", "not_measured"):
            ti.xcom_push(key="return_value", value=result)
        if status == "red":
            raise EvaluationFailedError(f"The evaluation is red. {result['answer']}")
        if status == "not_measured":
            starts_new = by_service and (outcome["status"] == "failed" or not missing)
            failure = EvaluationRunFailedError if starts_new else EvaluationNotMeasuredError
            again = (
                "asks only what was not measured. If the expected SQL of a question is wrong, "
                "correct it and clear the task"
            )
            if by_service:
                again = "starts a new one" if starts_new else "reads the results again"
            said = f"The evaluation measured too little. {result['answer']}"
            raise failure(f"{said}{first_unmeasured(judged)} A retry {again}.")
        return result

    def _give_up(self, attempt: Attempt, error: PlatformError, **how: Any) -> None:
        self._count_tokens(attempt, attempt.known)
        super()._give_up(attempt, error, **how)

    def _count_tokens(self, attempt: Attempt, ids: Ids | None) -> None:
        """Push the tokens of all tries. If this fails, the task continues its work."""
        if self.questions is None or ids is None or ids.get("tokens") is None:
            return
        record = attempt.record
        run = {"message_id": ids["evaluation_id"], "submitted_at": ids["submitted_at"]}
        usage = {"totalTokens": ids["tokens"]}
        try:
            summed = add_usage(record.store, record.counters, run, usage)
            attempt.context["ti"].xcom_push(key="total_usage", value=summed)
        except Exception:
            self.log.warning("The tokens of the task could not be counted.", exc_info=True)

    def _result(self, judged: list[Judged], status: str, reason: str) -> dict[str, Any]:
        from airflow_provider_platform.resources.evaluations.golden_questions import counts, wilson

        counted = counts(judged)
        passed, measured = counted["passed"], counted["measured"]
        low, high = wilson(passed, measured)
        answer = f"{passed} of {measured} measured questions passed"
        if measured:
            answer += f" ({low:.1%} to {high:.1%} with 95 % confidence)"
        questions = [one.to_json() for one in judged]
        return {
            "status": status,
            "reason": reason,
            "counts": counted,
            "share": passed / measured if measured else None,
            "interval": [round(low, 4), round(high, 4)],
            "branch_name": self.branch_name,
            "questions": questions,
            "reports": None,
            "answer": f"{answer}. {reason[:1].upper()}{reason[1:]}.",
            **_table(questions),
        }

    def _write_reports(self, result: Mapping[str, Any]) -> list[str]:
        from airflow_provider_platform.files.whole_files import write_whole
        from airflow_provider_platform.messages.markdown import to_markdown
        from airflow_provider_platform.messages.message import message_of

        folder = storage_path("output_path", self.output_path)
        lines = [json.dumps(one, ensure_ascii=False) for one in result["questions"]]
        message = message_of(
            {**result, **_table(result["questions"], most=None)},
            title=f"Evaluation {self.task_id}",
            max_rows=len(result["questions"]),
        )
        files = {
            "questions.jsonl": "\n".join(lines) + "\n",
            "junit.xml": _junit(self.task_id, result["questions"]),
            "evaluation.md": to_markdown(message),
        }
        for name, text in files.items():
            write_whole(folder / name, text.encode("utf-8", "replace"))
        return [str(folder / name) for name in files]


def _are_paths(questions: list[Any]) -> bool:
    return bool(questions) and all(isinstance(one, str) for one in questions)


def _read_yaml(path: str) -> Any:
    import yaml  # type: ignore[import-untyped] # Airflow needs it too

    place = storage_path("questions", path)
    try:
        return yaml.safe_load(place.read_bytes())
    except (OSError, yaml.YAMLError, ValueError) as error:
        said = shortened(" ".join(str(error).split()), 300)
        raise PlatformInputError(
            f"Nothing was sent: the questions in {quote_service(path)} cannot be read: {said}.",
            field="questions",
        ) from None


def _of_service(
    items: Sequence[Mapping[str, Any]],
) -> tuple[tuple[Question, ...], dict[Key, list[Asking]], int]:
    """Return the questions of the service's results, their verdicts, and how many have no text. A
    question is named by its text, because the service returns no name. Raises
    PlatformInputError if two have the same text."""
    from airflow_provider_platform.resources.evaluations.golden_questions import (
        Asking,
        Key,
        Question,
    )

    texts = [str(item.get("questionTextSnapshot") or "") for item in items]
    twice = [text for text, times in Counter(filter(None, texts)).items() if times > 1]
    if twice:
        raise PlatformInputError(
            "The evaluation was not graded: the service names a question by its text only, and "
            f"several questions have the same one: {', '.join(map(quote_service, twice[:5]))}. "
            "Give each question of the deployment its own text."
        )
    suite: list[Question] = []
    askings: dict[Key, list[Asking]] = {}
    for number, (text, item) in enumerate(zip(texts, items, strict=True), start=1):
        name = text or f"question {number}"
        suite.append(Question(name, name, ""))
        said = str(item.get("verdict") or "no verdict").strip().lower()
        measured = said in ("pass", "fail", "review")
        verdict: Any = said if measured else "error"
        reason = None if said == "pass" else said if measured else "error"
        askings[Key(name)] = [Asking(verdict=verdict, measured=measured, reason=reason)]
    return tuple(suite), askings, texts.count("")


def _table(questions: Sequence[Mapping[str, Any]], most: int | None = SHOWN) -> dict[str, Any]:
    """Return the questions as a table: first those that failed."""
    names = ("name", "verdict", "stability", "cause", "reason")
    worst = sorted(questions, key=lambda one: (one["verdict"] == "pass", one["stability"] or ""))
    rows = [[one[name] for name in names] for one in worst]
    columns = [{"name": name, "type": "String"} for name in names]
    return {"columns": columns, "rows": rows[:most], "row_count": len(rows)}


def _bounded(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the questions with texts short enough for XCom."""
    most = 2000
    while len(json.dumps(questions).encode()) > MAX_RESULT_BYTES and most:
        questions = [
            {
                name: shortened(value, most) if isinstance(value, str) else value
                for name, value in one.items()
            }
            for one in questions
        ]
        most //= 5
    return questions


def _xml_text(text: str) -> str:
    """Return a text without characters that XML does not allow."""
    return "".join(one for one in text if one.isprintable() or one in "\n\t")


def _junit(suite: str, questions: Sequence[Mapping[str, Any]]) -> str:
    """Return the result in the form that build servers read."""
    from xml.etree import ElementTree as ET

    failures = [one for one in questions if one["stability"] and one["verdict"] != "pass"]
    errors = [one for one in questions if not one["stability"]]
    root = ET.Element(
        "testsuite",
        name=suite,
        tests=str(len(questions)),
        failures=str(len(failures)),
        errors=str(len(errors)),
    )
    for one in questions:
        case = ET.SubElement(
            root, "testcase", classname=suite, name=_xml_text(one["name"]), time=str(one["seconds"])
        )
        if one["verdict"] != "pass":
            tag = "failure" if one["stability"] else "error"
            words = f"{one['reason']} ({one['cause']})"
            node = ET.SubElement(case, tag, message=_xml_text(words), type=str(one["stability"]))
            about = [name for name in ("difference", "sql", "expected_sql") if one[name]]
            node.text = _xml_text("\n".join(f"{name}: {one[name]}" for name in about))
    return ET.tostring(root, encoding="unicode", xml_declaration=True)
