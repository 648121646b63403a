"""The workspace and its folders."""
