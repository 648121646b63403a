"""What all operators share: the connection, checked arguments, links, failures and lists in XCom.

Arguments are checked and converted while Airflow parses the DAG file, those with a template after
it is rendered. An error for which a retry does not help becomes an AirflowFailException, so Airflow
does not retry. Of an expected error, the log shows only the message (`ShortTraceback`). A list in
XCom has at most as many items as the DAG author allows, and the log says if items are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from inspect import Parameter, isgenerator, signature
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from airflow_provider_platform._airflow import XCOM_TAKES_NONE, BaseOperator, BaseOperatorMeta
from airflow_provider_platform.client.argument_rules import is_absent, optional_id, present, refuse
from airflow_provider_platform.client.errors import PlatformError, PlatformInputError
from airflow_provider_platform.links import KNOWN, all_links
from airflow_provider_platform.operators._arguments import (
    EMPTY_ADDS_NOTHING,
    MADE_OF_PARTS,
    NEEDED,
    is_native,
    is_template,
    needed_by,
    refuse_missing_parts,
    refuse_rendered_steps,
    render_text,
    stored,
    vanished,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import timedelta
    from types import TracebackType

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.hooks.platform import PlatformHook


log = logging.getLogger(__name__)


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Convert errors for which a retry does not help into AirflowFailException. Other errors keep
    their type, so that a retry policy can distinguish them."""
    try:
        yield
    except PlatformError as error:
        if error.retryable:
            raise
        from airflow_provider_platform._airflow import AirflowFailException

        raise AirflowFailException(error.message) from error


class ShortTraceback(AbstractContextManager[None]):
    """Shorten the traceback of an expected error. Use it as the outermost block of what Airflow
    calls.

    Airflow then prints only the error's message. The frames of this package and of libraries, and
    the causes, are logged at debug level. The error keeps its type, and in `__context__` the error
    that caused it.
    """

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        origin = error if isinstance(error, PlatformError) else error and error.__cause__
        if error is None or not isinstance(origin, PlatformError):
            return
        log.debug("Where it failed:", exc_info=(type(error), error, traceback))
        cause = error.__cause__ or error.__context__
        error.__cause__ = None  # which also has the context not shown
        error.__context__ = cause
        # What is raised on has no frames but those of the callers of this block.
        error.__traceback__ = None


Check: TypeAlias = "Callable[[str, Any], Any]"
"""Makes of an argument's name and the value that was given the value that is meant."""
Checks: TypeAlias = "Mapping[str, Check | None]"
AfterExecution: TypeAlias = "Callable[[Context, Any], Any]"

DEFAULT_CONN_ID = "platform_default"
BACKSTOP_SECONDS = 120.0
"""How much longer than the deadline Airflow waits for a trigger that does not run."""
LINKED_ARGUMENTS = (
    "active_branch_name",
    "agent",
    "agent_id",
    "branch_name",
    "chat_id",
    "dashboard_id",
    "deployment_id",
    "notification_id",
    "report_id",
    "workbook_id",
)
"""Arguments whose values links are made of."""


class PlatformOperatorMeta(BaseOperatorMeta):
    """Creates the operators. A mapped task is created when it runs: what is wrong with its
    arguments then fails it at once, because a retry gets the same arguments."""

    def __call__(cls, *args: Any, **given: Any) -> Any:  # noqa: N805
        """Create the operator."""
        if not given.get("_airflow_from_mapped"):
            return super().__call__(*args, **given)
        from airflow_provider_platform._airflow import AirflowFailException

        with ShortTraceback():
            try:
                return super().__call__(*args, **given)
            except AirflowFailException:
                raise
            except Exception as error:
                said = error.message if isinstance(error, PlatformError) else repr(error)
                raise AirflowFailException(said) from error


class PlatformOperator(BaseOperator, metaclass=PlatformOperatorMeta):
    """Base of the operators.

    :param platform_conn_id: the connection of type `platform`
    :param multiple_outputs: push the result key by key too, so that another task can take one key,
        as in `task.output["key"]`
    """

    template_fields: Sequence[str] = ("platform_conn_id",)
    """Follows from `checks`."""
    ui_color = "#eef3fb"
    operator_extra_links = all_links()
    linked_result: ClassVar[dict[str, str]] = {}
    """What links are made of, by the field of the result that tells it."""
    named: ClassVar[tuple[str, ...]] = ()
    """The things that an argument can name instead of their ids: `report` instead of `report_id`.
    """
    returns_object: ClassVar[bool] = True
    """Whether the result is always an object, whose keys are XComs of their own too."""
    checks: ClassVar[Checks] = {}
    """The arguments of the class, each with its check. A subclass names its own; those of its bases
    are added, and None takes one of them away."""
    _converted: Mapping[str, Any] = {}
    """The arguments that are known, as their checks returned them."""
    _given: Mapping[str, Any] = {}
    """The arguments whose values are not known before the task runs, as they were given."""
    _expanded: Collection[str] = ()
    """In a mapped task: the arguments that `expand` gave."""
    _keeps_text = False
    rules: ClassVar[Sequence[Rule]] = ()
    """What arguments must fulfil together; those of the bases are added here too."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        bases = [base for base in cls.__bases__ if issubclass(base, PlatformOperator)]
        inherited = {name: check for base in bases for name, check in base.checks.items()}
        named = {**vars(cls).get("checks", {}), **inherited, **vars(cls).get("checks", {})}
        cls.checks = {name: check for name, check in named.items() if check is not None}
        rules = [rule for base in bases for rule in base.rules]
        cls.rules = tuple(dict.fromkeys([*rules, *vars(cls).get("rules", ())]))
        if "template_fields" not in vars(cls):
            cls.template_fields = (*cls.checks, "platform_conn_id")

    def __new__(cls, *_: Any, **given: Any) -> Self:
        task = super().__new__(cls)
        if given.get("_airflow_from_mapped"):
            mapped: Any = given["dag"].get_task(given["task_id"])
            expanded = given.keys() - mapped.partial_kwargs.keys()
            # The setter of Airflow needs what `__init__` sets.
            object.__setattr__(task, "_expanded", expanded)
        return task

    def __init__(
        self,
        *,
        platform_conn_id: str = DEFAULT_CONN_ID,
        multiple_outputs: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            post_execute=storing_outputs(kwargs.pop("post_execute", None)),
            multiple_outputs=self.returns_object if multiple_outputs is None else multiple_outputs,
            **kwargs,
        )
        self.platform_conn_id = platform_conn_id

    def effective_values(self, names: Collection[str]) -> dict[str, Any]:
        """Return the arguments' values, and the default of each that rendered to nothing."""
        values = {name: getattr(self, name) for name in names}
        given = present(values)
        absent = {name: value for name, value in values.items() if name not in given}
        defaults = _defaults_of(type(self)) if absent else {}
        for name, value in absent.items():
            given[name] = defaults.get(name, value)
        if "deferrable" in absent:
            given["deferrable"] = default_deferrable(None)
        return given

    def is_known(self, value: Any) -> bool:
        """Return whether the value is known before the task runs: it has no template, and is no
        template file and no function that Airflow calls for the value."""
        is_file = isinstance(value, str) and value.endswith(tuple(self.template_ext))
        return not is_template(value) and not is_file and not callable(value)

    def validate_known_arguments(self) -> None:
        """Convert every argument without a template into a value of its type. Raises
        PlatformInputError at parse time."""
        with self.named_errors():
            self._note_given()
            given = {name: getattr(self, name) for name in needed_by(type(self))}
            for name, value in given.items():
                if name in self._expanded and is_absent(value):
                    raise self._vanished(name, name)
            values = self.effective_values(self.checks)
            known = {name: value for name, value in values.items() if self.is_known(value)}
            self._convert(known)
            self._refuse_vanished({name: None for name in self._expanded if name in known})
            for name, value in given.items():
                without_value = is_absent(value) or self._converted.get(name, value) is None
                if value is not None and without_value and not self._is_required(name):
                    raise refuse(name, "must have a value, or be left out", value)
            self._hold_rules(known)

    def coerce_arguments(self) -> None:
        """Convert the arguments that were rendered, or changed since they were converted, into
        values of their types. Raises PlatformInputError."""
        with self.named_errors():
            needed = needed_by(type(self))
            for name, before in self._given.items():
                value = getattr(self, name)
                if name in needed and (place := vanished(name, before, value)):
                    raise self._vanished(name, place)
                if name == "output_path":
                    refuse_rendered_steps(name, before, value)
                if name in MADE_OF_PARTS and not is_absent(value):
                    refuse_missing_parts(name, before, value)
            values = self.effective_values([*self.checks, "platform_conn_id"])
            self.platform_conn_id = values.pop("platform_conn_id")
            changed = {
                name: value
                for name, value in values.items()
                if name not in self._converted or getattr(self, name) != self._converted[name]
            }
            self._convert(changed)
            self._refuse_vanished(self._given)
            self._hold_rules(changed)

    def _note_given(self) -> None:
        """Keep the arguments as they are before rendering."""
        values = {name: getattr(self, name) for name in (*self.checks, "platform_conn_id")}
        self._given = {name: value for name, value in values.items() if not self.is_known(value)}

    def _refuse_vanished(self, given: Collection[str]) -> None:
        """Raise PlatformInputError if a needed argument has been given and is an empty list or
        object, of which its check may return None."""
        for name in needed_by(type(self)):
            empty: tuple[Any, ...] = (None,) if name in EMPTY_ADDS_NOTHING else (None, [], {})
            if name in given and name in self._converted and self._converted[name] in empty:
                raise self._vanished(name, name)

    def _is_required(self, name: str) -> bool:
        return name not in _defaults_of(type(self))

    def _vanished(self, name: str, place: str) -> PlatformInputError:
        instead, leave_out = "", ""
        if place == name and not self._is_required(name):
            instead = f", and without it this task would {NEEDED[name]}"
            leave_out = f" If you want that, leave {name} out."
        return PlatformInputError(
            f"Nothing was sent: {place} has no value after rendering{instead}. The task that "
            "returns the value did not run, returned nothing, or somebody marked it as "
            f"successful.{leave_out}",
            field=name,
        )

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: Any,
        seen_oids: set[int],
    ) -> None:
        """Render; of mapped tasks too, which Airflow renders by this method only. Arguments of this
        package keep their texts with native rendering; what the author's function gets does not."""
        render = super()._do_render_template_fields
        if parent is not self:
            render(parent, template_fields, context, jinja_env, seen_oids)
            return
        self._note_given()
        own = [name for name in template_fields if name in (*self.checks, "platform_conn_id")]
        others = [name for name in template_fields if name not in own]
        render(self, others, context, jinja_env, seen_oids)
        self._keeps_text = True
        try:
            render(self, own, context, jinja_env, seen_oids)
        finally:
            self._keeps_text = False

    def _render(self, template: Any, context: Any, dag: Any = None) -> Any:
        if self._keeps_text and is_native(template):
            return render_text(template, context)
        return super()._render(template, context, dag)

    def _convert(self, values: Mapping[str, Any]) -> None:
        """Set arguments to the values that are meant. Raises PlatformInputError."""
        converted = {
            name: check(name, values[name])
            for name, check in self.checks.items()
            if check and name in values
        }
        for name, value in converted.items():
            setattr(self, name, value)
        self._converted = {**self._converted, **converted}

    def _hold_rules(self, names: Collection[str]) -> None:
        """Check each rule about these arguments if all of its values are known. Raises
        PlatformInputError."""
        for ruled, rule in self.rules:
            if set(names) & set(ruled) and self._converted.keys() >= set(ruled):
                try:
                    rule(**{name: self._converted[name] for name in ruled})
                except ValueError as error:
                    message = f"Nothing was sent: {error}."
                    raise PlatformInputError(message, field=ruled[0]) from None

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Add the task and its operator to errors of arguments in this block."""
        try:
            yield
        except PlatformInputError as error:
            place = f"task {self.task_id!r}, {self.operator_name}"
            raise PlatformInputError(
                error.reason, where=error.where_also(place), field=error.field
            ) from None

    def hook(self) -> PlatformHook:
        """Return a hook for the connection."""
        from airflow_provider_platform.hooks.platform import PlatformHook

        return PlatformHook(self.platform_conn_id)

    @contextmanager
    def opened(self, context: Context, **ids: Any) -> Iterator[PlatformHook]:
        """Check the arguments, store the links of the objects in the arguments and in `ids`, and
        return a hook with an open client; errors inside become Airflow's."""
        with airflow_errors():
            self.coerce_arguments()
            with self.hook() as hook, hook.client() as client, client.redacted_errors():
                self._find_named(hook)
                self.store_link(context, hook.config, **ids)
                with self.logged_link():
                    yield hook

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Continue after the wait. The links that the task has stored before stay: Airflow would
        store an empty address for each that this process does not know."""
        self.operator_extra_links = ()
        return super().resume_execution(next_method, next_kwargs, context)

    def _find_named(self, hook: PlatformHook) -> None:
        """Look up the ids of the things that the arguments in `named` name."""
        for thing in self.named:
            if (name := getattr(self, thing)) is not None:
                from airflow_provider_platform.resources.names import find_id

                deployment_id = hook.resolve_deployment_id(self.deployment_id)  # type: ignore[attr-defined]
                work = partial(find_id, thing=thing, name=name, deployment_id=deployment_id)
                with self.named_errors():
                    setattr(self, f"{thing}_id", hook.run(work))

    def store_link(self, context: Context, config: PlatformConfig, **ids: Any) -> None:
        """Store the known addresses for the task's extra links: addresses of the objects in the
        arguments and in `ids`. If this fails, the task continues its work."""
        ti = context.get("ti")
        if ti is None:
            return
        ids = {name: getattr(self, name, None) for name in LINKED_ARGUMENTS} | ids
        values = {name: value for name, value in ids.items() if value not in (None, "")}
        if "active_branch_name" in values:
            values.setdefault("branch_name", values["active_branch_name"])
        known: dict[str, str] = self.__dict__.setdefault(KNOWN, {})
        links = type(self).operator_extra_links
        addresses = config.web_addresses(values)
        new = {
            link.xcom_key: addresses[link.kind]
            for link in links
            if link.kind in addresses and known.get(link.xcom_key) != addresses[link.kind]
        }
        known |= new
        # Airflow stores an XCom for each link, so the running task has only those with an address.
        self.operator_extra_links = tuple(link for link in links if link.xcom_key in known)
        for key, address in new.items():
            try:
                ti.xcom_push(key=key, value=address)
            except Exception:
                self.log.warning(
                    "The task's link to the platform could not be stored.", exc_info=True
                )

    @contextmanager
    def logged_link(self) -> Iterator[None]:
        """Log the most useful known address if a try fails in this block."""
        try:
            yield
        except PlatformError:
            if link := self.link_line():
                self.log.info("%s", link)
            raise

    def link_line(self) -> str | None:
        """Return the most useful known address, for the log."""
        known = getattr(self, KNOWN, {})
        platform, *others = type(self).operator_extra_links
        links = [link for link in (*others, platform) if link.xcom_key in known]
        return f"{links[0].name}: {known[links[0].xcom_key]}" if links else None

    def store_result_link(
        self, context: Context, config: PlatformConfig, result: Any, **ids: Any
    ) -> None:
        """Store links as `store_link` does, also for the ids in the result."""
        if isinstance(result, dict):
            ids |= {name: result.get(field) for name, field in self.linked_result.items()}
            self.store_link(context, config, **ids)


class DeploymentOperator(PlatformOperator):
    """Base of the operators that work in a deployment.

    :param deployment_id: the deployment's id; default: that of the task whose output is
        `branch_name`, if it has the same connection, else the connection's
    """

    checks: ClassVar[Checks] = {"deployment_id": optional_id}

    def __init__(self, *, deployment_id: int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deployment_id: Any = deployment_id

    def validate_known_arguments(self) -> None:
        """Convert every argument without a template, in the deployment of the task that names the
        branch. Raises PlatformInputError at parse time."""
        if self.deployment_id is None:
            name = getattr(self, "branch_name", None)
            self.deployment_id = deployment_of(name, self.platform_conn_id)
        super().validate_known_arguments()

    def fingerprint(self, config: PlatformConfig, noun: str, *inputs: Any) -> str:
        """Return the key of a call of this kind in this deployment."""
        from airflow_provider_platform.client.config import fingerprint

        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint(noun, config.management_url, deployment_id, *inputs)


def deployment_of(branch_name: Any, conn_id: str) -> Any:
    """Return the `deployment_id` of the task whose output this is, if the task has this connection;
    else None. A branch of another deployment can have the same name."""
    source = getattr(branch_name, "operator", None)
    if isinstance(source, DeploymentOperator) and source.platform_conn_id == conn_id:
        return source.deployment_id
    return None


def default_deferrable(deferrable: bool | None) -> bool:
    """Return the given choice, else Airflow's `[operators] default_deferrable`."""
    if deferrable is not None:
        return deferrable
    from airflow_provider_platform._airflow import conf

    return bool(conf.getboolean("operators", "default_deferrable", fallback=False))


def airflow_traces() -> bool:
    """Return Airflow's `[traces] otel_on`."""
    from airflow_provider_platform._airflow import conf

    return bool(conf.getboolean("traces", "otel_on", fallback=False))


def earliest_deadline(
    deadline: float, execution_timeout: timedelta | None, context: Context, *, now: float
) -> float:
    """Return the deadline, or the end of this try by its `execution_timeout`, whichever comes first
    (Unix time)."""
    if execution_timeout is None:
        return deadline
    began = getattr(context.get("ti"), "start_date", None)
    start = began.timestamp() if began is not None else now
    return min(deadline, float(start + execution_timeout.total_seconds()))


def storing_outputs(author: AfterExecution | None) -> AfterExecution | None:
    """Return the `post_execute` of a task; `author` is the one that the DAG's author gave.

    Airflow calls `post_execute` between the execution and the storing of the result, for every
    operator, deferred or not. If None cannot be stored, it stores the keys that have a value, and
    leaves the result as a whole to Airflow.
    """
    if XCOM_TAKES_NONE:
        return author

    def store(context: Context, result: Any) -> Iterator[Any]:
        done = author(context, result) if author is not None else None
        if isgenerator(done):
            yield from done
        ti: Any = context["ti"]
        if ti.task.multiple_outputs and ti.task.do_xcom_push and _lacks_values(result):
            for key, value in result.items():
                if value is not None:
                    ti.xcom_push(key=key, value=value)
            # Of the copy that is executed: what the DAG says of the task stays.
            ti.task.multiple_outputs = False

    return store


def _lacks_values(result: Any) -> bool:
    return (
        isinstance(result, Mapping)
        and None in result.values()
        and all(isinstance(key, str) for key in result)
    )


@cache
def _defaults_of(operator: type) -> dict[str, Any]:
    """Return the defaults of all arguments that have one, each from the class that declares it."""
    defaults: dict[str, Any] = {}
    for base in reversed(operator.__mro__):
        parameters = signature(base.__init__).parameters.values()  # type: ignore[misc]
        defaults |= {one.name: one.default for one in parameters}
    return {name: value for name, value in defaults.items() if value is not Parameter.empty}


MAX_ITEMS = 1000


def capped(resources: Iterator[Any], max_items: int, log: Any) -> list[dict[str, Any]]:
    """Return the first items as plain JSON. Pages beyond them are not requested."""
    items = [stored(item) for item in islice(resources, max_items)]
    log_length(
        len(items), more=len(items) == max_items and bool(list(islice(resources, 1))), log=log
    )
    return items


def log_length(length: int, *, more: bool, log: Any) -> None:
    """Log how many items are returned."""
    if more:
        log.warning("The list is longer than max_items. Returning only the first %s items.", length)
    else:
        log.info("Items returned: %s", length)
