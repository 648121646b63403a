"""The platform's HTTP APIs, usable in any Python program: nothing here imports Airflow."""
