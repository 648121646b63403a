"""Misbehaviour on demand: faults that are armed, and points where the server holds."""
