"""The chat API: requests, records, and the course of one run from its prompt to its end."""
