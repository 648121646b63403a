"""What all sensors share: a poke polls once, and a deferred wait polls in the same way in the
triggerer.

    poke        polls once; if the condition does not hold yet, Airflow waits or the task defers
    trigger     polls at the sensor's interval until its deadline
    complete    the value, the time-out or the error, as a poke would have returned it

The condition is plain data (`resources.sensor_conditions`): every mode gives the same result.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform._airflow import BaseSensorOperator
from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.errors import PlatformError, from_payload
from airflow_provider_platform.operators._base import (
    BACKSTOP_SECONDS,
    PlatformOperator,
    ShortTraceback,
    airflow_errors,
    default_deferrable,
)
from airflow_provider_platform.resources.run_log import log_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform._airflow import Context, PokeReturnValue
    from airflow_provider_platform.client.platform_client import PlatformClient
    from airflow_provider_platform.client.polling import FailureBudget
    from airflow_provider_platform.client.redaction import KnownSecrets
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.sensor_conditions import Condition

STORE_KEY = "platform_sensor"


class PlatformSensor(PlatformOperator, BaseSensorOperator):
    """Base of the sensors.

    Accepts Airflow's own sensor parameters (`poke_interval`, `timeout`, `mode`, `soft_fail` ...).
    Five failed polls in a row are tolerated.

    :param deferrable: wait in the triggerer, where a wait needs no worker slot; None means
        Airflow's `[operators] default_deferrable`
    :param end_from_trigger: end a deferred wait in the triggerer once the condition is true,
        without a worker. A worker still ends a wait that times out or fails, a wait whose value
        exceeds 256 KB, and each wait of a sensor with `outlets`, `multiple_outputs`, a
        `post_execute` or `do_xcom_push=False`. Airflow may store the XCom of a wait that ends in
        the triggerer as JSON text
    """

    checks: ClassVar[Checks] = {
        "deferrable": arguments.boolean,
        "end_from_trigger": arguments.boolean,
    }
    returns_object: ClassVar[bool] = False
    condition_kind: ClassVar[str]
    """A name of `resources.sensor_conditions.KINDS`."""

    def __init__(
        self, *, deferrable: bool | None = None, end_from_trigger: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.end_from_trigger = end_from_trigger
        self.deferrable = default_deferrable(deferrable)
        self._budget: FailureBudget | None = None
        self._failure: PlatformError | None = None
        self._stored: FailureBudget | None = None
        self._linked = False

    def subject(self) -> dict[str, Any]:
        """Return what is polled, as plain JSON: the arguments of the condition."""
        own = PlatformSensor.checks
        return {name: getattr(self, name) for name in self.checks if name not in own}

    def execute(self, context: Context) -> Any:
        """Poll until the condition holds."""
        with self._only_time_skips():
            return super().execute(context)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Continue after the wait."""
        with self._only_time_skips():
            return super().resume_execution(next_method, next_kwargs, context)

    @contextmanager
    def _only_time_skips(self) -> Iterator[None]:
        """With `soft_fail` Airflow skips a sensor after any failure. Skip it only if its condition
        did not come true in time: nobody would see that a credential was revoked. A wait in which
        no poll was answered fails too."""
        from airflow_provider_platform._airflow import (
            AirflowSensorTimeout,
            AirflowSkipException,
        )

        try:
            yield
            return
        except (AirflowSensorTimeout, AirflowSkipException) as end:
            error = self._failure_behind(end)
            if error is None:
                raise
        with ShortTraceback():
            raise error

    def _failure_behind(self, end: Exception) -> Exception | None:
        """Return the failure for which Airflow ends this sensor as skipped or timed out."""
        from airflow_provider_platform._airflow import (
            AirflowSensorTimeout,
            AirflowSkipException,
            AirflowTaskTimeout,
        )
        from airflow_provider_platform.client.polling import deadline_after

        if self.never_fail:
            return None
        cause = end.__cause__  # Airflow raises the skip from the failure
        if isinstance(end, AirflowSkipException) and isinstance(cause, Exception):
            in_time = isinstance(cause, AirflowSensorTimeout | AirflowTaskTimeout)
            return None if in_time else cause
        if self._failure is not None and self._budget is not None and not self._budget.answered:
            return deadline_after(self._failure)
        return None

    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Poll once. Raises PlatformError, AirflowFailException."""
        from airflow_provider_platform._airflow import PokeReturnValue

        with ShortTraceback(), airflow_errors():
            self.coerce_arguments()
            with self.hook() as hook, hook.client() as client:
                self._store_link_once(context, client)
                try:
                    value = self._poll(context, client)
                except PlatformError as error:
                    if not (self.deferrable and self.silent_fail and error.retryable):
                        raise
                    self.log.error("Sensor poke failed: %s", error.message)
                    value = None
                self.store_result_link(context, client.config, value)
                if value is None and self.deferrable:
                    self._defer(client.clock() + self.timeout, client.clock())
        return value is not None and PokeReturnValue(is_done=True, xcom_value=value)

    def execute_complete(
        self, context: Context, event: dict[str, Any], wait: dict[str, Any] | None = None
    ) -> Any:
        """Return what the trigger's event reports. `wait` is what the task deferred with. An event
        of another wait (Airflow can reuse the ids of triggers) is ignored."""
        from airflow_provider_platform._airflow import AirflowSkipException

        expected = wait or event["wait"]
        with ShortTraceback():
            try:
                with airflow_errors():
                    self.coerce_arguments()
                    return self._complete(context, event, expected)
            except AirflowSkipException:
                raise
            except Exception as error:
                if self.never_fail:
                    message = "Skipping due to never_fail is set to True."
                    raise AirflowSkipException(message) from error
                raise

    def _complete(self, context: Context, event: dict[str, Any], wait: dict[str, Any]) -> Any:
        with self.hook() as hook, hook.client() as client:
            self.store_link(context, client.config)
            deadline = float(wait["deadline"])
            if event["wait"] != wait:
                self.log.warning(
                    "Ignoring the event of another trigger (Airflow can reuse the ids of "
                    "triggers). This task continues to wait."
                )
                self._defer(deadline, client.clock())
            if event["status"] == "timeout":
                self._time_out()
            if event["status"] == "error":
                error = from_payload(event["error"])
                if not (self.silent_fail and error.retryable and client.clock() < deadline):
                    raise error
                self.log.error("Sensor poke failed: %s", error.message)
                self._budget = None
                self._defer(deadline, client.clock())
            value = event["value"]
            if value is None:
                value = self._poll(context, client)
                if value is None:
                    self._defer(deadline, client.clock())
            self.store_result_link(context, client.config, value)
        self.log.info("Success criteria met. Exiting.")
        return value

    def _poll(self, context: Context, client: PlatformClient) -> dict[str, Any] | None:
        """Poll once with the rest of the wait's failure budget."""
        from airflow_provider_platform.client.polling import poll_once

        condition = self._condition()
        budget = self._remembered_failures(context)
        try:
            outcome, self._failure = client.run(
                lambda api: poll_once(
                    api,
                    condition.poll,
                    budget,
                    grace=condition.may_be_late,
                ),
                lambda event: self._log_change(event, client.secrets),
            )
        finally:
            self._remember(context, budget)
        value: dict[str, Any] | None = outcome
        return value

    @cached_property
    def _log_change(self) -> Callable[[object, KnownSecrets], None]:
        """Log what the polls report."""
        return log_changes(self.log)

    def _condition(self) -> Condition:
        from airflow_provider_platform.resources.sensor_conditions import Condition

        return Condition(self.condition_kind, self.subject())

    def _defer(self, deadline: float, now: float) -> None:
        from airflow_provider_platform.client.polling import FailureBudget, PollInterval
        from airflow_provider_platform.triggers import PlatformSensorTrigger

        poll_interval = PollInterval(
            interval=self.poke_interval,
            exponential_backoff=self.exponential_backoff,
            max_wait=self.max_wait.total_seconds() if self.max_wait else None,
        )
        trigger = PlatformSensorTrigger(
            platform_conn_id=self.platform_conn_id,
            condition=asdict(self._condition()),
            poll_interval=asdict(poll_interval),
            failure_budget=asdict(self._budget or FailureBudget()),
            deadline=deadline,
            end_from_trigger=self.end_from_trigger and not self._needs_worker,
        )
        self.defer(
            trigger=trigger,
            method_name="execute_complete",
            kwargs=trigger.subject,
            timeout=timedelta(seconds=max(0.0, deadline - now) + BACKSTOP_SECONDS),
        )

    @property
    def _needs_worker(self) -> bool:
        """Return whether a worker has something to do after the wait."""
        hooked = getattr(self, "_post_execute_hook", None) is not None
        return bool(self.outlets or self.multiple_outputs or hooked or not self.do_xcom_push)

    def _time_out(self) -> None:
        from airflow_provider_platform._airflow import AirflowSensorTimeout, AirflowSkipException

        message = f"Sensor has timed out after the specified timeout of {self.timeout} seconds."
        if self.soft_fail:
            raise AirflowSkipException(message)
        raise AirflowSensorTimeout(message)

    def _remembered_failures(self, context: Context) -> FailureBudget:
        """Return the number of failures so far. A sensor that Airflow reschedules is a new process
        at every poke, and keeps the number in the task's state (Airflow 3.3+). Without a task
        state, every poke counts from zero."""
        from airflow_provider_platform.client.polling import FailureBudget

        if self._budget is None:
            self._budget = FailureBudget()
            if self.mode == "reschedule":
                self._budget = self._stored_budget(context)
                self._stored = replace(self._budget)
        return self._budget

    def _stored_budget(self, context: Context) -> FailureBudget:
        from airflow_provider_platform.client.polling import FailureBudget

        ti: Any = context["ti"]
        store: Any = context.get("task_state_store")
        if store is None:
            since = _unix_time(ti.get_first_reschedule_date(context))
            return FailureBudget(missing_since=since, answered=since is not None)
        try:
            stored = store.get(STORE_KEY)
        except Exception:
            self.log.warning(
                "The number of failures so far cannot be read. Counting starts at zero.",
                exc_info=True,
            )
            return FailureBudget(answered=True)
        if not isinstance(stored, dict) or stored.pop("try_number", None) != ti.try_number:
            # Failures are stored, so every poll before a reschedule was answered.
            return FailureBudget(answered=ti.get_first_reschedule_date(context) is not None)
        return FailureBudget(**stored)

    def _remember(self, context: Context, budget: FailureBudget) -> None:
        """Store a changed number of failures for the next process. The result of the poll is the
        same whether or not this succeeds."""
        store: Any = context.get("task_state_store")
        if self.deferrable or store is None or self._stored is None:
            return
        if replace(self._stored, answered=budget.answered) == budget:
            return
        try:
            store.set(STORE_KEY, {**asdict(budget), "try_number": context["ti"].try_number})
        except Exception:
            self.log.warning(
                "The number of failures so far cannot be stored, so the sensor may tolerate more "
                "failures than it should.",
                exc_info=True,
            )
        else:
            self._stored = replace(budget)

    def _store_link_once(self, context: Context, client: PlatformClient) -> None:
        if not self._linked:
            self.store_link(context, client.config)
            self._linked = True


def _unix_time(moment: datetime | str | None) -> float | None:
    """Return a time as Unix time. Airflow 3.0 gives it as a string if a DAG runs without a
    worker."""
    if moment is None:
        return None
    return (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).timestamp()
