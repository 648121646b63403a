"""Calls as data: declarations, models, paging, and programs of effects."""
