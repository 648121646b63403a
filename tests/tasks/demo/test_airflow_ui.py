"""`make ui`: its port, and that no process of it is left."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from importlib.util import find_spec

from airflow_provider_platform.sandbox.demo import airflow_ui, home
from airflow_provider_platform.sandbox.demo.airflow_ui import running
from airflow_provider_platform.sandbox.demo.home import free_port

# Starts a child that ignores SIGTERM, says so on the standard output that both have, and waits.
PARENT = """
import subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
child += "; print('on', flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child])
time.sleep(600)
"""


def have_ended(output: int, patience: float) -> bool:
    """Whether all processes that could write this output are gone, or go in time."""
    readable, _, _ = select.select([output], [], [], patience)
    return bool(readable) and os.read(output, 100) == b""


def test_end_ends_processes_and_their_children() -> None:
    with running([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        output = os.dup(process.stdout.fileno())
        assert not have_ended(output, 0)

    assert process.returncode is not None
    assert have_ended(output, 60)
    os.close(output)


def listening() -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def test_restarted_ui_has_the_same_port() -> None:
    with listening() as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as browser:
            # The server closes first, as at Ctrl-C: the system keeps the address for a minute.
            server.accept()[0].close()
            assert browser.recv(1) == b""

    assert free_port(port) == port


def test_ui_does_not_use_the_port_of_another_server() -> None:
    with listening() as server:
        taken = server.getsockname()[1]

        assert free_port(taken) not in (0, taken)


def test_command_for_the_ui_that_the_demo_prints_exists() -> None:
    name = airflow_ui.__name__
    assert find_spec(name) is not None
    assert home.UI_COMMAND in ("make ui", f"python -m {name}")
