"""Waiting for something at the service: how often to ask, and how many failures to tolerate."""
