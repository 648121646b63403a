"""Scheduled notifications and their recipients."""
