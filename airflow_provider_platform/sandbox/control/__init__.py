"""How tests and demos steer a sandbox: the control API, and a client for it."""
