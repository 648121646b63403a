"""Deployments, their environments and agents."""
