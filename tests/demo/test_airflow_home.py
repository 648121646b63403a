"""The demo and the tests never touch an Airflow of the caller."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_platform.sandbox.demo.airflow_home import isolated

HOME = Path("/project/.demo/airflow")
DAGS = Path("/project/example_dags")


def test_demo_inherits_no_airflow_settings():
    callers = {
        "AIRFLOW_HOME": "/srv/airflow",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://production/airflow",
        "AIRFLOW_CONN_PLATFORM_DEFAULT": "platform://production",
        "_AIRFLOW_PARSING_CONTEXT_DAG_ID": "other",
        "PATH": "/usr/bin",
    }

    variables = isolated(callers, HOME, DAGS)

    assert "production" not in str(variables)
    assert variables["AIRFLOW_HOME"] == str(HOME)
    assert variables["AIRFLOW__CORE__DAGS_FOLDER"] == str(DAGS)
    assert variables["AIRFLOW__CORE__LOAD_EXAMPLES"] == "False"
    assert variables["PATH"] == "/usr/bin"


def test_loopback_addresses_bypass_the_callers_proxies():
    variables = isolated({"HTTP_PROXY": "http://proxy:3128", "no_proxy": "intranet"}, HOME, DAGS)

    assert variables["HTTP_PROXY"] == "http://proxy:3128"
    assert variables["no_proxy"] == variables["NO_PROXY"] == "intranet,127.0.0.1,localhost,::1"
