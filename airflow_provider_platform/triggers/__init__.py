"""Triggers: the waits of deferred tasks, one module for each resource."""
