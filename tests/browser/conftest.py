"""A real Airflow API server and a real browser, each started once and always stopped."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo.airflow_ui import running
from airflow_provider_platform.sandbox.demo.dag_runs import isolated
from tests.support.browser.demo_ui import DemoUi, demo_and_ui

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HEALTHY_SECONDS = 120


@dataclass(frozen=True)
class AirflowServer:
    """An API server with a metadata database of its own, without login."""

    url: str
    env: dict[str, str]

    def create(self, **connection: Any) -> None:
        """Make a connection through the REST API."""
        request = urllib.request.Request(
            f"{self.url}/api/v2/connections",
            data=json.dumps(connection).encode(),
            headers={"Content-Type": "application/json"},
        )
        with _opener().open(request, timeout=30) as response:
            assert response.status == 201

    def stored(self, conn_id: str) -> dict[str, Any]:
        """The connection as it lies in the database, decrypted."""
        command = ["connections", "export", "--file-format", "json", "-"]
        printed = _airflow(command, self.env).stdout
        connection: dict[str, Any] = json.loads(printed[printed.index("{") :])[conn_id]
        return connection


@pytest.fixture(scope="session")
def chromium() -> str:
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on PATH (Debian: apt install chromium)")
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    playwright.expect.set_options(timeout=60_000)
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--no-proxy-server", "--process-per-site"],
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Where all pages open. Its first page stays open, and with it the process of all pages from
    this address: each new process would compile Airflow's UI again."""
    context = browser.new_context(
        viewport={"width": 1300, "height": 1200},
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(60_000)
    first = context.new_page()
    first.route("http://127.0.0.1/", lambda route: route.fulfill(body=""))
    first.goto("http://127.0.0.1/")
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A new page. What it and the pages that it has opened stored is forgotten after the test."""
    yield context.new_page()
    for opened in context.pages[1:]:
        opened.close()
    context.set_storage_state({})


@pytest.fixture(scope="session")
def airflow_server(browser: Browser) -> Iterator[AirflowServer]:
    """The server; asks for the browser first, so that it is not started in vain."""
    home = Path(tempfile.mkdtemp(prefix="airflow-browser-"))
    try:
        with _serving(home) as server:
            yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def _starting_demo(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Future[DemoUi]]:
    """The demo, its UI and two runs in it, which start beside the tests that do without them."""
    folder = tmp_path_factory.mktemp("demo")

    def start() -> DemoUi:
        demo_ui = running_ui.enter_context(demo_and_ui(folder))
        with suppress(OSError):  # the tests that need these runs would start them
            demo_ui.start_runs_to_look_at()
        return demo_ui

    with ExitStack() as running_ui, ThreadPoolExecutor(1) as beside:
        yield beside.submit(start)


@pytest.fixture(scope="session", autouse=True)
def _demo_starts_early(request: pytest.FixtureRequest) -> None:
    if any("demo_ui" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("_starting_demo")


@pytest.fixture(scope="session")
def demo_ui(_starting_demo: Future[DemoUi]) -> DemoUi:
    """Airflow's UI over a demo, for all tests that look at it."""
    return _starting_demo.result()


@contextmanager
def _serving(home: Path) -> Iterator[AirflowServer]:
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    (home / "dags").mkdir()
    env = isolated(os.environ, home, home / "dags") | {
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
    }
    _airflow(["db", "migrate"], env)
    log_file = home / "api-server.log"
    command = [sys.executable, "-m", "airflow", "api-server"]
    with log_file.open("w") as log, running(command, env=env, stdout=log) as process:
        _wait_until_healthy(url, process, log_file)
        yield AirflowServer(url, env)


def _airflow(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "airflow", *command],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def _wait_until_healthy(url: str, process: subprocess.Popen[str], log_file: Path) -> None:
    opener = _opener()
    deadline = time.monotonic() + HEALTHY_SECONDS
    while True:
        try:
            with opener.open(f"{url}/api/v2/monitor/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the API server did not start:\n{log_file.read_text()[-3000:]}")
            time.sleep(0.2)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
