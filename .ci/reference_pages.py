"""Writes docs/reference: a page for each operator, sensor, decorator and notifier.

Made of signatures, docstrings and the example DAGs; --check says whether the pages are current.
A parameter that no docstring describes, a class without "Use it ..." or without an example is an
error: it is mended at the source. The examples of XComs are those of docs/reference/xcoms.json,
which `reference_xcoms.py` records.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_origin

from airflow_provider_platform.client import errors
from airflow_provider_platform.get_provider_info import get_provider_info
from airflow_provider_platform.sandbox import faults
from airflow_provider_platform.sandbox.state import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[1]
PAGES = PROJECT / "docs" / "reference"
EXAMPLES = PROJECT / "example_dags"
LINE = 100
"""Characters of a line of code."""
ERRORS_HEAD = ("| error | a retry can help | meaning |", "| --- | --- | --- |")
MADE = "This page is generated from the code: `make reference`."
PREFIXES = {
    "chat": ("Chat", "DataQuery", "PlatformOutcomeUnknown", "ResultValue", "ResultWrite"),
    "compare": ("Data", "NumbersMoved", "ResultEmpty", "ResultNotComparable"),
    "dbt_sync": ("DbtSync", "AlreadyRunning", "OperationMissing", "PlatformOutcomeUnknown"),
    "deliveries": (
        *("AlreadyRunning", "OperationMissing", "PlatformOutcomeUnknown", "ReportDelivery"),
    ),
    "evaluation": (
        *("ChatQuota", "ChatRpc", "ChatUserLimit", "Evaluation", "OperationMissing"),
        *("PlatformOutcomeUnknown", "ResultWrite"),
    ),
    "exports": ("DashboardExport", "ResultWrite"),
    "pre_aggregations": (
        *("DataQuery", "NoPreAggregation", "PlatformOutcomeUnknown", "PreAggregation"),
        "ResultEmpty",
    ),
    "query": ("Data", "Page", "ResultEmpty", "ResultTruncated", "ResultValue", "ResultWrite"),
    "PlatformApiOperator": ("PlatformCredentialAnswer", "PlatformOutcomeUnknown"),
    "PlatformBuildSensor": (
        *("BranchNotActive", "BranchNotFound", "BranchNotServed", "BuildFailed"),
        "OperationMissing",
    ),
    "PlatformChatThreadSensor": (),
    "PlatformCreateNotificationOperator": ("PlatformConflict", "PlatformOutcomeUnknown"),
    "PlatformDbtSyncSensor": ("OperationMissing", "PlatformOutcomeUnknown"),
    "PlatformDuplicateWorkbookOperator": ("PlatformOutcomeUnknown",),
    "PlatformMergeBranchOperator": (
        *("BranchNotFound", "BranchNotMerged", "MergedBuild"),
        *("OperationMissing", "PlatformOutcomeUnknown"),
    ),
    "PlatformOpenBranchOperator": (
        *("BranchClosed", "BranchNotFound", "BranchNotServed", "BranchNotWritten"),
        *("BuildFailed", "OperationMissing"),
    ),
    "PlatformPublishWorkbookOperator": ("DashboardReview", "PlatformOutcomeUnknown"),
}
"""What the names of the error classes begin with, by the name of the class or of its module."""
_REST = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
_OF_THE_FUNCTION = {"python_callable", "op_args", "op_kwargs", "prompt", "sql"}
"""Parameters that come from the decorated function."""
OF_THE_BRANCH = (
    "that of the task whose output is `branch_name`, if it has the same connection, else "
)
"""The part of `deployment_id` that is left out if there is no `branch_name`."""
_WITHOUT_KEYS = ("None", "list[dict[str, Any]]")
"""What `execute` returns where `multiple_outputs` has nothing to push key by key."""
TASK_GROUPS = (("airflow_provider_platform.operators.branches", "branch_gate"),)
"""Functions that make a group of tasks: the module and the name."""
OF_EVERY_DAY = {
    "operators.chat": (
        "prompt",
        "chat_id",
        "agent",
        "active_branch_name",
        "session_settings",
        "max_rows",
        "output_path",
        "platform_conn_id",
        "deferrable",
        "timeout",
    ),
}
"""The parameters that most DAGs use, in the order of the page, by the module of the class that
describes them. The others are advanced."""
OF_ANOTHER_GENERATOR = "operations.md"
"""The page in the same folder that `operations_page.py` writes."""
AIRFLOWS_SENSOR_PARAMETERS = """\
The parameters of Airflow's sensors work as everywhere: `poke_interval` (seconds or timedelta, 60),
`timeout` (seconds or timedelta, 7 days), `mode` (`poke` or `reschedule`), `silent_fail`,
`never_fail`, `exponential_backoff`, `max_wait`. Only `soft_fail` differs: it skips the task if the
condition did not come true in time; any other failure fails the task. A wait in the triggerer keeps
to `timeout` too, and on average to `poke_interval`."""


class Incomplete(Exception):
    """The code lacks something that a page needs; the text says what is missing where."""


@dataclass(frozen=True)
class Subject:
    """The subject of a page: a class, and the name that a DAG author writes."""

    name: str
    page: str
    kind: str
    module: str
    described: type
    """The class that has the parameters."""
    doc: str


def subjects() -> Iterator[Subject]:
    """Yield all operators, sensors, decorators and notifiers that the provider lists."""
    info = get_provider_info()
    for package, kind in (("operators", "operator"), ("sensors", "sensor")):
        for group in info[package]:
            for module in group["python-modules"]:
                yield from _classes(module, kind)
    for decorator in info["task-decorators"]:
        module, _, function = decorator["path"].rpartition(".")
        home = import_module(module)
        [decorated] = [
            found
            for name, found in vars(home).items()
            if name.endswith("DecoratedOperator") and getattr(found, "__module__", "") == module
        ]
        doc = inspect.getdoc(getattr(home, function)) or ""
        name = f"@task.{decorator['name']}"
        yield Subject(name, f"task_{decorator['name']}", "decorator", module, decorated, doc)
    for path in info.get("notifications", ()):
        module, _, name = path.rpartition(".")
        found = getattr(import_module(module), name)
        yield Subject(name, name, "notifier", module, found, inspect.getdoc(found) or "")


def _classes(module: str, kind: str) -> Iterator[Subject]:
    home = import_module(module)
    for name in sorted(getattr(home, "__all__", vars(home))):
        found = getattr(home, name)
        if not (inspect.isclass(found) and name.startswith("Platform")):
            continue
        if found.__module__ == module or name in getattr(home, "__all__", ()):
            yield Subject(name, name, kind, module, found, inspect.getdoc(found) or "")


def pages() -> dict[str, str]:
    """Return every page by its file name, with the overview. Raises `Incomplete`."""
    found = list(subjects())
    xcoms = json.loads((PAGES / "xcoms.json").read_text())
    made = {
        f"{subject.page}.md": _page(subject, xcoms.get(subject.described.__name__))
        for subject in found
    }
    groups = {f"{name}.md": _group_page(module, name) for module, name in TASK_GROUPS}
    others = {"errors.md": _errors_page(), "sandbox.md": _sandbox_page()}
    return made | groups | others | {"index.md": _overview(found)}


def _group_page(module: str, name: str) -> str:
    """Return the page of a function that makes a group of tasks."""
    function = getattr(import_module(module), name)
    paragraphs, described = _split(inspect.getdoc(function) or "")
    names = vars(import_module(module))
    rows = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in described:
            raise Incomplete(f"{name}: no docstring says what {parameter.name} is")
        text = described[parameter.name]
        rows.append(_row(parameter, _kind(parameter, names), f"{text.rstrip('.')}."))
    first, *says = [text for text in paragraphs if not text.startswith(("with ", "Raises"))]
    imported = f"```python\nfrom {module} import {name}\n```"
    example = re.search(r"\n\n((?: {4}.+\n)+)", inspect.getdoc(function) or "")
    if example is None:
        raise Incomplete(f"{name}: its docstring has no example")
    used = f"```python\n{textwrap.dedent(example[1])}```"
    parts = [f"# {name}", imported, first, used, *says, "## Parameters", _table(rows), MADE]
    return "\n\n".join(parts) + "\n"


def _row(parameter: inspect.Parameter, kind: str, text: str) -> str:
    """Return a parameter as a row of a table."""
    default = parameter.default
    shown = "**required**" if default is inspect.Parameter.empty else f"`{_default(default)}`"
    kind = _cell(kind.replace("float | timedelta", "float or timedelta"))
    text = _cell(text[:1].upper() + text[1:])
    return f"| `{parameter.name}` | `{kind}` | {shown} | {text} |"


def _errors_page() -> str:
    """Return the page with every error."""
    rows = [_error_row(name, found) for name, found in _all_errors()]
    head = (
        "All errors of `airflow_provider_platform.client.errors` derive from `PlatformError`. "
        "The attribute `retryable` says whether a later try can succeed. If not, operators raise "
        "`AirflowFailException`, and Airflow does not retry the task. Every other "
        "error keeps its class, so that a [retry "
        "policy](../recipes/retry_policies.md) can decide by it."
    )
    table = "\n".join([*ERRORS_HEAD, *rows])
    return f"# Errors\n\n{head}\n\n{table}\n\n{MADE}\n"


def _sandbox_page() -> str:
    """Return the page with the settings, faults and breakpoints of the sandbox."""
    model = settings.Settings
    rows = []
    for name, field in model.model_fields.items():
        kind = model.__annotations__[name]
        setting = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind
        )
        rows.append(_row(setting, _kind(setting, vars(settings)), _joined(str(field.description))))
    parts = ["# Settings and faults of the sandbox", "## Settings", _table(rows)]
    for title, kinds in (
        ("Faults that replace a response", faults.ANSWER_KINDS),
        ("Faults that change the bytes of a response", faults.WIRE_KINDS),
        ("Faults that change a run", faults.RUN_KINDS),
        ("Breakpoints", faults.REQUEST_BREAKPOINTS | faults.RUN_BREAKPOINTS),
    ):
        lines = [f"| `{name}` | {_cell(text)} |" for name, text in kinds.items()]
        parts += [f"## {title}", "\n".join(["| name | effect |", "| --- | --- |", *lines])]
    return "\n\n".join([*parts, MADE]) + "\n"


def _all_errors() -> Iterator[tuple[str, type[errors.PlatformError]]]:
    for name, found in vars(errors).items():
        if inspect.isclass(found) and issubclass(found, errors.PlatformError):
            yield name, found


def _error_row(name: str, found: type[errors.PlatformError]) -> str:
    return f"| `{name}` | {'yes' if found.retryable else 'no'} | {_cell(_first(found))} |"


def _overview(found: list[Subject]) -> str:
    lines = ["# Reference", ""]
    for kind in ("operator", "sensor", "decorator", "notifier"):
        rows = [subject for subject in found if subject.kind == kind]
        if not rows:
            continue
        lines += [f"## {kind.title()}s", "", "| | |", "| --- | --- |"]
        for subject in rows:
            says = _split(subject.doc)[0][0]
            lines.append(f"| [`{subject.name}`]({subject.page}.md) | {_cell(says)} |")
        lines.append("")
    lines += ["## Task groups", "", "| | |", "| --- | --- |"]
    for module, name in TASK_GROUPS:
        says = _split(inspect.getdoc(getattr(import_module(module), name)) or "")[0][0]
        lines.append(f"| [`{name}`]({name}.md) | {_cell(says)} |")
    lines += ["", "## Errors", "", "[All errors](errors.md), and whether a retry can help.", ""]
    lines += ["## Sandbox", "", "[Settings and faults](sandbox.md) for your tests.", ""]
    groups = (name for _, name in TASK_GROUPS)
    names = "\n".join([*(subject.page for subject in found), *groups, "errors", "sandbox"])
    lines += [f"```{{toctree}}\n:hidden:\n\n{names}\n```", "", MADE, ""]
    return "\n".join(lines)


def _page(subject: Subject, xcom: Any) -> str:
    says, use, returns = _sections(subject)
    imported = f"from {subject.module} import {subject.name}"
    if len(imported) > LINE:
        imported = f"from {subject.module} import (\n    {subject.name},\n)"
    if subject.kind == "decorator":
        imported = "from airflow.sdk import task"
    parts = [
        f"# {subject.name}",
        f"```python\n{imported}\n```",
        *says,
        "## When to use it",
        *use,
        "## Example",
        _example(subject),
        "## Parameters",
        _parameters(subject),
    ]
    if subject.kind != "notifier":
        parts += ["## What it returns", *returns]
        if xcom is not None:
            value = json.dumps(xcom, indent=2, ensure_ascii=False)
            said = "An example of its XCom from the sandbox, with at most two items of each list:"
            parts += [said, f"```json\n{value}\n```"]
    parts += ["## Errors", *_errors(subject), MADE]
    return "\n\n".join(parts) + "\n"


def _split(doc: str) -> tuple[list[str], dict[str, str]]:
    """Return the paragraphs of a docstring, and its descriptions of parameters."""
    text, *fields = re.split(r"^:param (\w+): ?", doc, flags=re.MULTILINE)
    paragraphs = [_joined(part) for part in re.split(r"\n\s*\n", text) if part.strip()]
    texts = (" ".join(value.split()) for value in fields[1::2])
    return paragraphs, dict(zip(fields[::2], texts, strict=True))


def _joined(paragraph: str) -> str:
    """Return a paragraph as one line, and a list as one line for each item."""
    return re.sub(r"\s*\n\s*(?!- )", " ", re.sub(r"\n\s*- ", "\n- ", paragraph.strip()))


def _sections(subject: Subject) -> tuple[list[str], list[str], list[str]]:
    """Return what it does, when to use it, and what it returns."""
    paragraphs, _ = _split(subject.doc)
    use = [text for text in paragraphs if text.startswith("Use it ")]
    if not use:
        raise Incomplete(f"{subject.name}: no paragraph of its docstring begins with 'Use it'")
    rest = [text for text in paragraphs if text not in use]
    whole = [text for text in rest if text.startswith("Returns")]
    says = [text for text in rest if text not in whole]
    parts = [one for text in says for one in _sentences(text) if one.startswith("Returns")]
    if not whole:
        says = [" ".join(one for one in _sentences(text) if one not in parts) for text in says]
    return [text for text in says if text], use, whole or parts or ["None."]


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.;]) (?=[A-Z`r])", text)


def _parameters(subject: Subject) -> str:
    described: dict[str, str] = {}
    found: dict[str, inspect.Parameter] = {}
    kinds: dict[str, str] = {}
    order = [cls for cls in subject.described.__mro__ if _ours(cls)]
    for cls in order:
        described = _split(inspect.getdoc(cls) or "")[1] | described if cls.__doc__ else described
        init = vars(cls).get("__init__")
        for name, parameter in inspect.signature(init).parameters.items() if init else ():
            if name != "self" and parameter.kind not in _REST:
                found.setdefault(name, parameter)
                kinds.setdefault(name, _kind(parameter, vars(import_module(cls.__module__))))
    if (outputs := found.get("multiple_outputs")) is not None:
        described_class: Any = subject.described
        found["multiple_outputs"] = outputs.replace(default=described_class.returns_object)
        if inspect.signature(described_class.execute).return_annotation in _WITHOUT_KEYS:
            del found["multiple_outputs"]
    templates = set(subject.described.template_fields)  # type: ignore[attr-defined]
    rows: dict[str, str] = {}
    for name, parameter in found.items():
        if subject.kind == "decorator" and name in _OF_THE_FUNCTION:
            continue
        if name not in described:
            raise Incomplete(f"{subject.name}: no docstring says what {name} is")
        if re.search(r"([,;:]|\b(or|and|with))\.?$", described[name]):
            raise Incomplete(f"{subject.name}: what {name} is ends in the middle of a sentence")
        if name == "deployment_id" and "branch_name" not in found:
            described[name] = described[name].replace(OF_THE_BRANCH, "")
        template = "" if name in templates else " Not a template."
        text = described[name].rstrip(".")
        rows[name] = _row(parameter, kinds[name], f"{text}.{template}")
    wanted = next((names for end, names in OF_EVERY_DAY.items() if _describes(order, end)), rows)
    tables = [_table([rows[name] for name in wanted if name in rows])]
    if advanced := [row for name, row in rows.items() if name not in wanted]:
        tables.append("### Advanced\n\n" + _table(advanced))
    more = "Parameters are template fields, unless the table says otherwise."
    if subject.kind != "notifier":
        more += " Airflow's own parameters can be set too."
    if subject.kind == "sensor":
        more += f" {AIRFLOWS_SENSOR_PARAMETERS}"
    if subject.kind == "decorator":
        more += " The function gets its arguments as in `@task`. Its return value is not rendered."
    return "\n\n".join([more, *tables])


def _describes(classes: list[type], module: str) -> bool:
    return any(found.__module__.endswith(f".{module}") for found in classes)


def _table(rows: list[str]) -> str:
    """Return a table of parameters."""
    return "\n".join(["| name | type | default | |", "| --- | --- | --- | --- |", *rows])


def _kind(parameter: inspect.Parameter, names: dict[str, Any]) -> str:
    """The type of a parameter. A name for the words that it accepts is replaced by these words."""

    def words(name: re.Match[str]) -> str:
        named = names.get(name[0])
        return str(named).removeprefix("typing.") if get_origin(named) is Literal else name[0]

    return re.sub(r"\b[A-Z]\w+", words, str(parameter.annotation))


def _ours(cls: type) -> bool:
    return cls.__module__.startswith("airflow_provider_platform.")


def _default(value: Any) -> str:
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example(subject: Subject) -> str:
    """Return the longest use in the example DAGs, with a link to its file."""
    wanted = subject.name.removeprefix("@task.")
    found = [
        (_snippet(source, node), file.name)
        for file in sorted(EXAMPLES.glob("*.py"))
        for source in [file.read_text()]
        for node in ast.walk(ast.parse(source))
        if _uses(node, wanted, subject.kind)
    ]
    if not found:
        raise Incomplete(f"{subject.name}: no example DAG uses it")
    snippet, name = max(found, key=lambda one: one[0].count("\n"))
    link = f"The whole DAG: [{name}](../../example_dags/{name})."
    return f"```python\n{snippet}\n```\n\n{link}"


def _uses(node: ast.AST, wanted: str, kind: str) -> bool:
    if kind == "decorator":
        return isinstance(node, ast.FunctionDef) and any(
            ast.unparse(decorator).partition("(")[0] == f"task.{wanted}"
            for decorator in node.decorator_list
        )
    if isinstance(node, ast.Assign | ast.Expr):
        calls = (found for found in ast.walk(node.value) if isinstance(found, ast.Call))
        names = (ast.unparse(call.func) for call in calls)
        return any(name == wanted or name.startswith(f"{wanted}.partial") for name in names)
    return False


def _snippet(source: str, node: Any) -> str:
    lines = source.splitlines()
    first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))]) - 1
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return textwrap.dedent("\n".join(lines[first : node.end_lineno]))


def _errors(subject: Subject) -> list[str]:
    if subject.kind == "notifier":
        return ["If the notifier fails, the failure is logged, and the task keeps its state."]
    resource = subject.module.rpartition(".")[2]
    prefixes = PREFIXES.get(subject.name, PREFIXES.get(resource, ()))
    own = [
        _error_row(name, found)
        for name, found in _all_errors()
        if name.startswith(prefixes) and name != "ChatError"
    ]
    text = (
        "Arguments are checked when the DAG file is parsed (of a mapped task, when it runs), and "
        "templates after rendering. If an argument is invalid, `PlatformInputError` names the "
        "parameter, and in most cases nothing was sent. If the [list of errors](errors.md) says "
        "that a retry cannot help, the task fails without a retry (`AirflowFailException`). Every "
        "other error keeps its class, so that a retry policy can distinguish errors."
    )
    if not own:
        return [text]
    return [text, "\n".join([*ERRORS_HEAD, *own])]


def _first(found: type) -> str:
    return " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())


def main() -> int:
    """Write the pages; with `--check`, only compare them."""
    try:
        made = pages()
    except Incomplete as incomplete:
        print(f"docs/reference cannot be generated. {incomplete}.")
        return 1
    there = {file.name: file.read_text(encoding="utf-8") for file in PAGES.glob("*.md")}
    del there[OF_ANOTHER_GENERATOR]
    if "--check" in sys.argv:
        if there != made:
            print("docs/reference is not current. Run `make reference`.")
        return int(there != made)
    for name in there.keys() - made.keys():
        (PAGES / name).unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
