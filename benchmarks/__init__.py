"""Measurements; nothing here passes or fails. `make bench` runs them all."""
