"""The hook: the entry point from Airflow to the client."""
