"""The data model and its branches."""
