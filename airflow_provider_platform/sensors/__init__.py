"""Sensors: one module for each resource of the platform."""
