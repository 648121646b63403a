"""Workbooks and their dashboards."""
