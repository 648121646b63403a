"""The demo: the example pipeline, run by a real Airflow against the sandbox."""
