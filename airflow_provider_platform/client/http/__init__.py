"""Requests over HTTP: the transport, its retries, and the synchronous and asynchronous client."""
