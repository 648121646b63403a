"""Embedding: tenants, their users and groups, sessions and access."""
