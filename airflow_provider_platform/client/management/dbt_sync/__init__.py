"""dbt syncs."""
