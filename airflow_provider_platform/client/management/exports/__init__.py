"""Dashboard exports."""
