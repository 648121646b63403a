"""The table of the management API's operations, which the client and the sandbox share."""
