"""An Apache Airflow provider for the analytics platform."""

from __future__ import annotations

__version__ = "0.1.0"
