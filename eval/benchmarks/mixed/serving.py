"""A `fineprint serve` of the benchmark's own: a fresh data folder, a free port, stopped at the end.

So that one command reproduces a table, and nothing that was read before can be found. The server
shares the machine with the client; `CellRecord.loop_lag_ms` shows what the client suffered from it.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from app.settings import child_environment
from eval.errors import PeerError

START_S, STOP_S = 600.0, 20.0
_LISTENING = re.compile(rb"Fineprint is at (http://\S+)")
_PROGRAM = "from app.cli import main; main()"


@contextmanager
def served(model: str | None = None) -> Iterator[str]:
    """The server's address, once it can be asked. Raises PeerError with the end of its log when it
    does not start."""
    with _stoppable(), tempfile.TemporaryDirectory(prefix="fineprint-bench-") as name:
        folder = Path(name)
        log = folder / "serve.log"
        command = [sys.executable, "-c", _PROGRAM, "serve", "--port", "0"]
        command += ["--data-dir", str(folder / "data")]
        command += [] if model is None else ["--model", model]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=child_environment(),
                # Ctrl-C at the terminal is for the benchmark, which then stops its server.
                start_new_session=True,
            )
        try:
            yield _address(process, log)
        finally:
            _stop(process)


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM ends the block like an exit, so that the server does not outlive the benchmark."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        said = log.read_bytes()
        if found := _LISTENING.search(said):
            return found[1].decode().rstrip("/")
        if process.poll() is not None:
            break
        time.sleep(0.1)
    last = log.read_text("utf-8", "replace").strip().splitlines()[-5:]
    raise PeerError(
        "The server did not start: " + (" ".join(last) or f"no word from it in {START_S:g} s.")
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
