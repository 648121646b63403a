"""The DAGs that the demo can run."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from airflow_provider_platform.sandbox.demo import __main__ as demo
from airflow_provider_platform.sandbox.demo import dag_runs
from airflow_provider_platform.sandbox.demo.checkout import DEMO_DAGS, UI_MODULE, dag_file, menu


@pytest.mark.parametrize("dag_id", DEMO_DAGS)
def test_demo_gives_every_parameter_that_has_no_default(dag_id: str, airflow_db: None) -> None:
    params = dag_runs.load_dag(dag_file(dag_id), dag_id).params
    given = demo._conf(dag_id)
    assert {name for name in params if not params.get_param(name).has_value} <= set(given)
    assert set(given) <= set(params)


def test_help_lists_each_dag_with_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["demo", "--help"])
    with pytest.raises(SystemExit):
        demo._options()
    printed = capsys.readouterr().out
    assert menu() in printed
    assert "model_to_production  From model to production: sync, prove" in printed


def test_dag_that_the_demo_cannot_run_is_refused_with_the_choices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["demo", "nightly"])
    with pytest.raises(SystemExit):
        demo._options()
    assert "model_to_production" in capsys.readouterr().err


def test_command_for_the_ui_that_the_demo_prints_outside_a_clone_exists() -> None:
    assert find_spec(UI_MODULE) is not None
