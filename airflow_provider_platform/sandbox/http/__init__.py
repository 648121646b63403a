"""Requests and responses: recorded, checked, and changed by faults."""
