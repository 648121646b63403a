"""Which port Airflow's UI gets."""

from __future__ import annotations

import socket

from airflow_provider_platform.sandbox.demo.airflow_ui import free_port


def listening() -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def test_restarted_ui_has_the_same_port():
    with listening() as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as browser:
            # The server closes first, as at Ctrl-C: the system keeps the address for a minute.
            server.accept()[0].close()
            assert browser.recv(1) == b""

    assert free_port(port) == port


def test_ui_does_not_use_the_port_of_another_server():
    with listening() as server:
        taken = server.getsockname()[1]

        assert free_port(taken) not in (0, taken)
