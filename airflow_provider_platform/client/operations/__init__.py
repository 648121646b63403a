"""Calls as data: declarations, models and paging."""
