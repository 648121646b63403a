"""Reports and where they are placed."""
