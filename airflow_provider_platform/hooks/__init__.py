"""The hook: the door from Airflow to the client."""
