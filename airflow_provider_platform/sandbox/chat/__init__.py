"""The chat API: threads, the runs that answer their messages, and the simulated agent."""
