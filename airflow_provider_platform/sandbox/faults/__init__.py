"""Misbehaviour on demand: faults, and breakpoints at which the sandbox stops."""
