"""Requests and responses: recorded, checked, and spoiled where a fault says so."""
