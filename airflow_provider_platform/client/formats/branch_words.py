"""The service's words for a branch that does not answer, in build status, SQL and chat alike.

A caller looks for them inside a longer text ("Error: BadRequestError: Branch is not active").
"""

from __future__ import annotations

NO_SUCH_BRANCH = "Bad branch"
NOT_ACTIVE = "Branch is not active"


def branch_advice(said: str | None) -> str | None:
    """What to do about a branch that does not answer, None where the text speaks of something
    else."""
    if NOT_ACTIVE in (said or ""):
        return (
            "Nobody opened the branch: put PlatformOpenBranchOperator before this task, or switch "
            "the branch's staging environment on in the platform, and run the task again."
        )
    if NO_SUCH_BRANCH in (said or ""):
        return (
            "There is no branch of this name: check its spelling, and whether the dbt sync that "
            "writes it has completed."
        )
    return None
