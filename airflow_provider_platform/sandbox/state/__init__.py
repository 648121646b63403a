"""What a sandbox remembers until it is reset, and how it is set to behave."""
