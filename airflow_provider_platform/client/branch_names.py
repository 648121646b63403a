"""Which names of branches are sent, and the service's words for a branch that does not answer.

A branch's name is a segment of its data API address, where `..` would name production. The branch
is in a Git repository, so Git's rules for names hold: what Git refuses is refused here too.

The words are the same in build status, SQL and chat. A caller looks for them inside a longer text
("Error: BadRequestError: Branch is not active").
"""

from __future__ import annotations

import re

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.redaction import quote_service

_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]")
_TIME = re.compile(r"\d\d:\d\d")


def check_branch_name(name: str, field: str = "branch_name") -> str:
    """Return the name. Raises PlatformInputError, with the rule, for a name that no branch has."""
    problem = _problem_of(name)
    if problem is None:
        return name
    raise PlatformInputError(
        f"Nothing was sent: {quote_service(name)!r} cannot be a branch name: {problem}.",
        field=field,
    )


def _problem_of(name: str) -> str | None:
    refused = _REFUSED.search(name)
    if refused is not None:
        step = (
            ". A run_id has such characters: use `ts_nodash` instead, for example "
            "'feature-{{ dag_run.run_after | ts_nodash }}'"
            if _TIME.search(name)
            else ""
        )
        return f"the character {refused[0]!r} is not allowed{step}"
    if not name.isprintable():
        return "it has a character that cannot be printed"
    segments = name.split("/")
    if "" in segments:
        return "it begins or ends with a slash, has two slashes in a row, or is empty"
    if any(segment.startswith(".") or segment.endswith((".", ".lock")) for segment in segments):
        return "no part between slashes may begin or end with a dot, or end with .lock"
    if ".." in name or "@{" in name or name == "@" or name.startswith("-"):
        return "it may not contain '..' or '@{', begin with '-', or be '@'"
    return None


NO_SUCH_BRANCH = "Bad branch"
NOT_ACTIVE = "Branch is not active"


def branch_advice(message: str | None) -> str | None:
    """What to do about a branch that does not answer, None where the text speaks of something
    else."""
    if NOT_ACTIVE in (message or ""):
        return (
            "The branch is not open. Put PlatformOpenBranchOperator before this task, or open the "
            "branch in the platform. Then run the task again."
        )
    if NO_SUCH_BRANCH in (message or ""):
        return (
            "No branch has this name. Check the spelling, and check whether the dbt sync that "
            "writes the branch has completed."
        )
    return None
