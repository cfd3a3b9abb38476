"""`fineprint serve` as a process: one per port and per data folder, ready when it says so, gone on
SIGTERM."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from app.api.problems import RETRY_SECONDS
from ui.serve import KEEP_ALIVE_SECONDS

SERVE = [sys.executable, "-c", "from app.cli import main; main()", "serve"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FINEPRINT_")}
    return kept | {
        "FINEPRINT_DATA_DIR": str(tmp_path / "data"),
        "FINEPRINT_CACHE_DIR": str(tmp_path / "cache"),
        "FINEPRINT_PRECISION": "float32",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture
def server(
    environment: dict[str, str], tiny_llama: Path
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A running server with a tiny model, and its address."""
    command = [*SERVE, "--port", "0", "--model", str(tiny_llama)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield address(process), process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def address(process: subprocess.Popen[str]) -> str:
    """Where the server says it is."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if match := re.search(r"Fineprint is at (http://127\.0\.0\.1:\d+)", line):
            return match.group(1)
    raise AssertionError("".join(said))


def refused(environment: dict[str, str], *arguments: str) -> str:
    """What a server says that ends with exit status 2."""
    done = subprocess.run(
        [*SERVE, *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_serves_page_and_api_and_ends_on_sigterm(
    server: tuple[str, subprocess.Popen[str]], environment: dict[str, str], tiny_llama: Path
) -> None:
    url, process = server
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        assert client.get("/readyz").status_code == 200
        page = client.get("/")
        assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
        assert "frame-ancestors" in page.headers["content-security-policy"]
        assert set(client.get("/v1").json()) == {"error"}
        missing = client.get("/api/v1/nothing")
        assert missing.headers["content-type"] == "application/problem+json"
        assert client.put("/api/v1/documents").status_code == 405
        assert client.get("/healthz", headers={"host": "rebound.example"}).status_code == 403

    model = ["--model", str(tiny_llama)]
    port = url.rpartition(":")[2]
    other = environment | {"FINEPRINT_DATA_DIR": environment["FINEPRINT_DATA_DIR"] + "-other"}
    taken = refused(other, "--port", port, *model)
    assert f"127.0.0.1:{port}" in taken and "--port" in taken
    assert not Path(other["FINEPRINT_DATA_DIR"]).exists(), "the port comes before everything else"
    locked = refused(environment, "--port", "0", *model)
    assert "nother" in locked and environment["FINEPRINT_DATA_DIR"] in locked

    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    with closing(
        sqlite3.connect(Path(environment["FINEPRINT_DATA_DIR"]) / "fineprint.sqlite")
    ) as db:
        assert db.execute("SELECT count(*) FROM workers").fetchone() == (0,), "it left in order"
    host, _, number = url.removeprefix("http://").partition(":")
    with pytest.raises(ConnectionRefusedError), socket.create_connection((host, int(number))):
        pass


def test_without_a_model_it_says_how_to_get_one(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*SERVE, "--port", "0"], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "fineprint models pull" in done.stderr and "Traceback" not in done.stderr
    assert not Path(environment["FINEPRINT_DATA_DIR"]).exists()


def test_a_host_that_is_not_here_is_named_as_the_fault(environment: dict[str, str]) -> None:
    said = refused(environment, "--host", "no-such-host.invalid")
    assert "no-such-host.invalid" in said and "--host" in said
    assert "Stop the program" not in said


def test_a_damaged_model_leaves_no_database(environment: dict[str, str], tmp_path: Path) -> None:
    model = tmp_path / "cut.gguf"
    model.write_bytes(b"GGUF\x03\x00\x00\x00")
    done = subprocess.run(
        [*SERVE, "--port", "0", "--model", str(model)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "cut.gguf" in done.stderr and "copy or download it again" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.sqlite"))


def test_a_connection_outlives_the_wait_that_a_refusal_asks_for() -> None:
    assert KEEP_ALIVE_SECONDS > 2 * RETRY_SECONDS
