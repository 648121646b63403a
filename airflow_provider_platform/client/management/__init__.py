"""The management API, one package for each resource."""
