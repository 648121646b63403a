"""Text and bytes of the service as values: addresses, booleans, JSON, lines, durations."""
