"""Deliveries of reports to spreadsheets."""
