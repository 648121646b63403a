"""Notifiers: results as messages, for callbacks and deadline alerts."""
