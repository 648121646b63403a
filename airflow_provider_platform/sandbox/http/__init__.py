"""Requests and responses: recorded, checked, and changed where a fault says so."""
