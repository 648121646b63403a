"""The state of a sandbox until its reset, and its settings."""
