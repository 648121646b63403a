"""The chat API: requests, records, and the run of one message from its prompt to its end."""
