"""Builds of the data model: how long a build takes, how it ends, and what is reported meanwhile.

A build is a list of moments that is fixed when it starts, so its status is a function of the
sandbox's clock: nothing runs in the background, and a test moves the clock instead of waiting.

    begun ----------- shown ----------- built
          not shown          building          its outcome

Until a build is shown, the service knows nothing of it: a branch that was just opened is still
"not active", and production still reports the build before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from airflow_provider_platform.sandbox.state.settings import BuildOutcome, Settings

DOES_NOT_COMPILE = "orders.yml: the cube orders joins customers, which does not exist"
"""The error of the model of a branch with ``broken`` in its name."""
_FAILED = "the worker ended while it installed the project's packages"

Stage = Literal["not_shown", "building"] | BuildOutcome


@dataclass(frozen=True)
class Model:
    """One state of a branch's files: its commit is made of ``revision``, and ``filesHash`` of
    ``content``, which a merge can leave as it was; without it of ``revision`` too."""

    revision: str
    compiles: bool = True
    content: str | None = None

    @property
    def commit(self) -> str:
        """``lastHash``: 40 hex digits."""
        return hashlib.sha1(self.revision.encode(), usedforsecurity=False).hexdigest()

    @property
    def files(self) -> str:
        """``filesHash``: 64 hex digits."""
        return hashlib.sha256((self.content or self.revision).encode()).hexdigest()


@dataclass(frozen=True)
class Build:
    """One build of one model. Times are Unix times by the sandbox's clock.

    ``error`` says why the build fails. ``previous_error`` says why the previous build failed: the
    service can still report that while this build is running.
    """

    job: int
    model: Model
    begun_at: float
    shown_at: float
    built_at: float
    outcome: BuildOutcome
    error: str | None
    previous_error: str | None

    def stage(self, now: float) -> Stage:
        if now < self.shown_at:
            return "not_shown"
        if now < self.built_at:
            return "building"
        return self.outcome

    def changed_at(self, now: float) -> float:
        """Return when the build reached its current stage."""
        moments = {"not_shown": self.begun_at, "building": self.shown_at}
        return moments.get(self.stage(now), self.built_at)

    def error_text(self, now: float) -> str | None:
        running = self.stage(now) in ("not_shown", "building")
        return self.previous_error if running else self.error

    def log(self, now: float) -> list[tuple[float, str]]:
        """Return the log of its pod so far: time and line, oldest first."""
        lines = [
            (self.shown_at, f"Build {self.job} of {self.model.commit[:12]} has started"),
            (self.built_at, self.error or f"Build {self.job}: {self.outcome}"),
        ]
        return [(at, line) for at, line in lines if at <= now]


def begin(model: Model, settings: Settings, now: float, *, job: int, after: Build | None) -> Build:
    """Return a build that starts now and takes as long as the settings say now."""
    shown = now + settings.build_delay
    built = shown + settings.build_seconds
    outcome, error = settings.build_outcome, None
    if outcome == "built" and not model.compiles:
        outcome, error = "failed", DOES_NOT_COMPILE
    elif outcome == "failed":
        error = _FAILED
    return Build(
        job=job,
        model=model,
        begun_at=now,
        shown_at=shown,
        built_at=built,
        outcome=outcome,
        error=error,
        previous_error=None if after is None else after.error_text(now),
    )
