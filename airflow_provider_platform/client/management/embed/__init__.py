"""Embedding: sessions, access, tenants."""
