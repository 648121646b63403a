"""Operators that make one call that must not be repeated: the same record, without a wait.

If the response to a call is lost, the task looks for the result of the call if the service allows
it. If not, the outcome is unknown, and the task says so instead of making the call twice.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.operators._base import PlatformOperator, ShortTraceback
from airflow_provider_platform.operators._run_record import (
    RecordKeeper,
    Step,
    SubmissionRecord,
    read_record,
)

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.hooks.platform import PlatformHook


MAX_RESULT_BYTES = 48 * 1024


class SingleCallOperator(PlatformOperator):
    """Base of the operators with one call that must not be repeated."""

    @abstractmethod
    def idempotency_key(self, config: PlatformConfig) -> str:
        """Return the fingerprint of address, identity and input."""

    @abstractmethod
    def call(self, hook: PlatformHook) -> Any:
        """Make the call and return the result as plain JSON. Raises PlatformError."""

    def prepare(self, hook: PlatformHook) -> dict[str, Any]:
        """Return what `find` needs, read before the call; stored with `intent`."""
        return {}

    def find(self, hook: PlatformHook, ids: dict[str, Any]) -> Any | None:
        """Return the result of a call whose response was lost, or None if the call changed nothing.
        Raises PlatformOutcomeUnknownError if the service does not show it."""
        raise PlatformOutcomeUnknownError(
            "The service did not confirm the call, and the API cannot show whether the call was "
            "carried out. Check in the platform. If the call was carried out, mark this task as "
            "successful. If it was not, clear the task to make the call again.",
            where=self.task_type,
        )

    def remember(self, result: Any) -> dict[str, Any]:
        """Return what `reload_result` needs, stored with `done`; the store holds 64 KB."""
        import json

        small = len(json.dumps(result).encode()) <= MAX_RESULT_BYTES
        return {"result": result} if small else {}

    def reload_result(self, hook: PlatformHook, ids: dict[str, Any]) -> Any:
        """Return the result of a call that succeeded in an earlier try."""
        if "result" in ids:
            return ids["result"]
        raise PlatformOutcomeUnknownError(
            "An earlier try made the call successfully. Its response was too large to store, so "
            "this try cannot return it. If no task needs the response, mark this task as "
            "successful. If a task needs it, clear this task. The task then makes the call a "
            "second time.",
            where=self.task_type,
        )

    def execute(self, context: Context) -> Any:
        """Make the call once, and return its result."""
        with ShortTraceback(), self.opened(context) as hook:
            result = self.execute_once(context, hook)
            self.store_result_link(context, hook.config, result)
            return result

    def execute_once(self, context: Context, hook: PlatformHook) -> Any:
        """Make the call, or not, as the record of the last try says, and return its result."""
        submission = RecordKeeper(context, self.idempotency_key(hook.config))
        return self._make_once(hook, submission, read_record(context))

    def _make_once(
        self, hook: PlatformHook, submission: RecordKeeper, record: SubmissionRecord | None
    ) -> Any:
        step, _ = submission.first_step(record)
        if record is not None and step is Step.REPORT:
            submission.note("lost", record.ids)
            raise PlatformOutcomeUnknownError(
                "An earlier try ended unexpectedly while it made this call with different input (a "
                "template rendered another value). The earlier call may have been carried out. "
                "Check in the platform. If the earlier call was carried out and is enough, mark "
                "this task as successful. Otherwise clear the task to make the call with the "
                "current input.",
                where=self.task_type,
            )
        if record is not None and step is Step.RELOAD:
            self.log.info("The call already succeeded in an earlier try. Reading its result again.")
            return self.reload_result(hook, record.ids)
        try:
            result = self._result(hook, submission, record.ids if record else {}, step)
        except PlatformOutcomeUnknownError:
            submission.note("lost", record.ids if record else {})
            raise
        submission.note("done", self.remember(result))
        return result

    def _result(
        self, hook: PlatformHook, submission: RecordKeeper, lost: dict[str, Any], step: Step
    ) -> Any:
        from airflow_provider_platform.client.repeats import (
            may_have_been_processed,
            outcome_unknown,
        )

        if step is Step.FIND_OUT:
            self.log.warning(
                "An earlier try ended unexpectedly while it made the call. Checking whether "
                "the call was carried out."
            )
            result = self.find(hook, lost)
            if result is not None:
                return result
        ids = self.prepare(hook)
        submission.write("intent", ids)
        try:
            return self.call(hook)
        except PlatformError as error:
            if not may_have_been_processed(error):
                submission.note("failed", ids)
                raise
            try:
                result = self.find(hook, ids)
            except PlatformOutcomeUnknownError as unknown:
                raise outcome_unknown(unknown, error) from error
            if result is None:
                raise
            return result
