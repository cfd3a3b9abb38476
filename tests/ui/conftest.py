"""A server in a process of its own and a browser to look at its page."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_SECONDS = 120


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(
    command: list[str], port: int, log: Path, *, kill: bool = False
) -> Iterator[str]:
    """The server's address once it answers; it is stopped at the end of the block, or killed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_up(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            if kill:
                process.kill()
            else:
                process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}:\n{log.read_text()[-3000:]}")
        try:
            if httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(f"the server did not answer in {START_SECONDS} s:\n{log.read_text()[-3000:]}")


@pytest.fixture
def serve_process() -> Callable[..., AbstractContextManager[str]]:
    """serve_process(command, port, log, kill=): a server's address while it runs."""
    return running_server


@pytest.fixture
def unused_port() -> int:
    """A port for a server of a test's own."""
    return free_port()


@pytest.fixture(scope="session")
def scripted_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server of `scripted_server.py` over an empty data folder."""
    folder, port = tmp_path_factory.mktemp("scripted"), free_port()
    script = str(Path(__file__).with_name("scripted_server.py"))
    command = [sys.executable, script, str(port), str(folder / "data")]
    with running_server(command, port, folder / "log") as url:
        yield url


# Not for the whole session: while Playwright's synchronous interface is open, its event loop runs
# in the tests' thread, and no later test could start one of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium. Skips with the reason when there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    executable = next((path for name in names if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip("no Chromium on the PATH; on Debian: apt-get install chromium fonts-noto-cjk")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=executable, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


OpenPage = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPage]:
    """open_page(url, locale=, width=, height=) -> a page of a fresh browser profile.

    `page.foreign` lists requests to anywhere but the server, `page.faults` script errors.
    """
    contexts = []

    def opened(url: str, *, locale: str = "en-GB", width: int = 1280, height: int = 800) -> Any:
        context = browser.new_context(
            locale=locale, viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.foreign, page.faults = [], []
        page.on("request", lambda request: _note_foreign(page, url, request.url))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.goto(url)
        page.wait_for_selector("#fp-brand h1")
        return page

    yield opened
    for context in contexts:
        context.close()


def _note_foreign(page: Any, home: str, url: str) -> None:
    if not url.startswith((home, "data:", "blob:")):
        page.foreign.append(url)
