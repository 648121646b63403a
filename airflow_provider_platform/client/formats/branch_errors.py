"""The service's words for a branch that does not answer, in build status, SQL and chat alike.

A caller looks for them inside a longer text ("Error: BadRequestError: Branch is not active").
"""

from __future__ import annotations

NO_SUCH_BRANCH = "Bad branch"
NOT_ACTIVE = "Branch is not active"


def branch_advice(message: str | None) -> str | None:
    """What to do about a branch that does not answer, None where the text speaks of something
    else."""
    if NOT_ACTIVE in (message or ""):
        return (
            "The branch is not open. On release v0.4.0 and later, put PlatformOpenBranchOperator "
            "before this task. On an earlier release, open the branch in the platform. Then run "
            "the task again."
        )
    if NO_SUCH_BRANCH in (message or ""):
        return (
            "No branch has this name. Check the spelling, and check whether the dbt sync that "
            "writes the branch has completed."
        )
    return None
