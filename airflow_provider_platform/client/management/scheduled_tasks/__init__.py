"""Scheduled tasks of the agent."""
