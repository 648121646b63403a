"""The network below HTTP: sockets, TLS, proxies, and turns on the event loop."""
