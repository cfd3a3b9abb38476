"""A document read, the server killed with SIGKILL, started again and asked: what is read again, and
how long the first token takes. Prints one JSON object.

    python scripts/kv_restart.py --text contract.txt --question "What is the governing law?"

The question goes through the engine with evidence pages as the product's answers do, once cold (a
server without any KV), once from memory and once from the disk after the kill.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

_LISTENING = re.compile(rb"Fineprint is at (http://\S+)")
_PROGRAM = "from app.cli import main; main()"
WAIT_S = 900.0


@contextmanager
def served(folder: Path, extra: dict[str, str]) -> Iterator[tuple[str, float]]:
    """Address of a server on this data folder and the seconds it took to start. It is killed at the
    end, as by a crash."""
    from app.settings import child_environment

    log = folder.parent / f"serve-{time.time():.0f}.log"
    command = [sys.executable, "-c", _PROGRAM, "serve", "--port", "0", "--data-dir", str(folder)]
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=child_environment(**extra)
        )
    try:
        while not (found := _LISTENING.search(log.read_bytes())):
            if process.poll() is not None or time.monotonic() - started > WAIT_S:
                raise SystemExit(f"the server did not start; see {log}")
            time.sleep(0.05)
        yield found[1].decode(), time.monotonic() - started
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def take_in(http: httpx.Client, text: Path) -> tuple[str, float]:
    """Upload and wait until the engine has read it all: document id, seconds."""
    started = time.monotonic()
    reply = http.post("/api/v1/documents", files={"file": (text.name, text.read_bytes())})
    reply.raise_for_status()
    address = f"/api/v1/documents/{reply.json()['id']}"
    while (state := http.get(address).json())["status"] != "completed":
        if state["status"] in ("failed", "cancelled"):
            raise SystemExit(f"the document was not read: {state}")
        time.sleep(0.1)
    return state["id"], time.monotonic() - started


def ask(http: httpx.Client, document: str, question: str) -> dict[str, object]:
    """Milliseconds to the answer's first text as the client sees it, and the answer's account."""
    body = {"question": question, "document_ids": [document], "stream": True}
    started = time.monotonic()
    first = None
    with http.stream("POST", "/api/v1/answers", json=body) as reply:
        reply.raise_for_status()
        for line in reply.iter_lines():
            if line.startswith("event: answer.delta") and first is None:
                first = time.monotonic() - started
            if line.startswith("data:") and '"answer.completed"' in line:
                answer = json.loads(line[5:])
    return {
        "first_text_ms": None if first is None else round(1000 * first, 1),
        "total_ms": round(1000 * (time.monotonic() - started), 1),
        "answer": answer["answer"],
        "phrasing": answer["phrasing"],
        "usage": answer["usage"],
        "coverage": answer["coverage"],
    }


def metrics(http: httpx.Client) -> dict[str, float]:
    """The engine's counters."""
    found = {}
    for line in http.get("/metrics").text.splitlines():
        if line.startswith(("fineprint_engine_read_tokens", "fineprint_kv_")):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    return found


def held(folder: Path) -> int:
    """Bytes that KV pages take of the disk."""
    return sum(path.stat().st_blocks * 512 for path in (folder / "kv").glob("*.safetensors"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--question", action="append", required=True)
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between done and kill")
    options = parser.parse_args()
    record: dict[str, object] = {"question": options.question}
    with tempfile.TemporaryDirectory(prefix="fineprint-kv-") as name:
        folder = Path(name) / "data"
        for turn in ("before", "after"):
            with (
                served(folder, {}) as (url, start_s),
                httpx.Client(base_url=url, timeout=WAIT_S) as http,
            ):
                account: dict[str, object] = {"start_s": round(start_s, 2)}
                if turn == "before":
                    document, read_s = take_in(http, options.text)
                    account["read_s"] = round(read_s, 1)
                    state = http.get(f"/api/v1/documents/{document}").json()
                    account["total_tokens"] = state["total_tokens"]
                account["questions"] = [ask(http, document, one) for one in options.question]
                account["again"] = [ask(http, document, one) for one in options.question]
                account["metrics"] = metrics(http)
                time.sleep(options.pause)
                account["disk_bytes"] = held(folder)
            record[turn] = account
    sys.stdout.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
