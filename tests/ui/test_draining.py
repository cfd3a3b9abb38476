"""The beginning and the end of a server: warm before ready; the first signal lets answers end, the
second does not."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from app.gate import Gate
from backend.errors import BackendError
from backend.types import TokenEvent
from ui.draining import DrainingServer, Work
from ui.ending import Ending

SERVE = [sys.executable, "-c", "from app.cli import main; main()", "serve"]
Start = Callable[..., tuple[httpx.Client, "subprocess.Popen[str]"]]


@pytest.fixture
def start(tmp_path: Path, tiny_llama: Path) -> Iterator[Start]:
    """start(drain_s) -> a client of a server in a process of its own, and the process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FINEPRINT_")}
    environment = kept | {
        "FINEPRINT_DATA_DIR": str(tmp_path / "data"),
        "FINEPRINT_CACHE_DIR": str(tmp_path / "cache"),
        "FINEPRINT_PRECISION": "float32",
        "OMP_NUM_THREADS": "1",
    }
    opened: list[tuple[httpx.Client, subprocess.Popen[str]]] = []

    def begin(drain_s: float) -> tuple[httpx.Client, subprocess.Popen[str]]:
        process = subprocess.Popen(
            [*SERVE, "--port", "0", "--model", str(tiny_llama)],
            env=environment | {"FINEPRINT_DRAIN_S": str(drain_s)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if match := re.search(r"Fineprint is at (http://127\.0\.0\.1:\d+)", line):
                break
        else:
            raise AssertionError(said)
        client = httpx.Client(base_url=match.group(1), trust_env=False, timeout=60)
        opened.append((client, process))
        return client, process

    yield begin
    for client, process in opened:
        client.close()
        if process.poll() is None:
            process.kill()
        process.communicate()


class Generation:
    """A stream of /v1 that is read in a thread."""

    def __init__(self, client: httpx.Client, tokens: int) -> None:
        model = client.get("/v1/models").json()["data"][0]["id"]
        self.body = {
            "model": model,
            "prompt": "The",
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
        }
        self.lines: list[str] = []
        self.begun = threading.Event()
        self.url = str(client.base_url)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        assert self.begun.wait(30)

    def _read(self) -> None:
        try:
            with (
                httpx.Client(base_url=self.url, trust_env=False, timeout=60) as client,
                client.stream("POST", "/v1/completions", json=self.body) as reply,
            ):
                for line in reply.iter_lines():
                    if line:
                        self.lines.append(line)
                        self.begun.set()
        except httpx.HTTPError as error:
            self.lines.append(f"broken: {error}")
            self.begun.set()

    def ended(self) -> str:
        """The last line, once there is no more."""
        self.thread.join(40)
        assert not self.thread.is_alive()
        return self.lines[-1]


def test_the_first_signal_lets_running_answers_end_and_takes_no_new_ones(start: Start) -> None:
    client, process = start(drain_s=60)
    running = Generation(client, tokens=1500)
    process.send_signal(signal.SIGTERM)
    end = time.monotonic() + 5
    while (ready := client.get("/readyz")).status_code == 200:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert ready.json()["status"] == "stopping"
    new = client.post("/v1/completions", json=running.body | {"stream": False})
    assert (new.status_code, new.json()["error"]["code"]) == (503, "server_stopping")
    assert int(new.headers["retry-after"]) > 0
    assert running.thread.is_alive(), "it goes on meanwhile"
    assert running.ended() == "data: [DONE]"
    assert process.wait(20) == 0


def test_when_the_time_is_over_answers_end_with_a_reason(start: Start) -> None:
    client, process = start(drain_s=0.5)
    running = Generation(client, tokens=4000)
    process.send_signal(signal.SIGTERM)
    last = json.loads(running.ended().removeprefix("data: "))
    assert last["error"]["code"] == "server_stopping"
    assert "when it is back" in last["error"]["message"]
    assert process.wait(20) == 0


def test_a_second_signal_ends_at_once(start: Start) -> None:
    client, process = start(drain_s=60)
    Generation(client, tokens=4000)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM
    assert time.monotonic() - began < 20


class SlowToWake:
    """An engine whose first answer comes when it is told to."""

    attends_pages = True

    def __init__(self, failure: str = "") -> None:
        self.woken = threading.Event()
        self.failure = failure
        self.tokenizer = SimpleNamespace(encode=lambda _: [1, 2])

    def generate(self, request: Any) -> Iterator[TokenEvent]:
        assert self.woken.wait(20)
        finish = "error" if self.failure else "stop"
        yield TokenEvent(request.request_id, 0, 1, "a", cast("Any", finish), error=self.failure)


def served(
    engine: SlowToWake, gate: Gate, ending: Ending, hurry: Callable[[], None] = lambda: None
) -> tuple[DrainingServer, socket.socket]:
    settings = SimpleNamespace(drain_s=1.0)
    idle = SimpleNamespace(idle=True, hurry=hurry)
    services = SimpleNamespace(engine=engine, gate=gate, settings=settings)
    work = Work(cast("Any", services), cast("Any", idle), cast("Any", idle))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(FastAPI(), log_config=None)
    return DrainingServer(config, ending, work, ready="It is ready."), listener


def test_ready_only_once_the_model_has_answered(capsys: pytest.CaptureFixture[str]) -> None:
    engine, gate = SlowToWake(), Gate()
    hurried: list[str] = []
    server, listener = served(engine, gate, Ending(), lambda: hurried.append(gate.phase))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/docs"
    wait_for(lambda: server.started)
    assert httpx.get(url, trust_env=False).status_code == 200, "it listens already"
    assert gate.phase == "warming up" and "ready" not in capsys.readouterr().err
    engine.woken.set()
    wait_for(lambda: gate.phase == "serving")
    assert not hurried
    server.handle_exit(signal.SIGTERM, None)
    thread.join(10)
    assert hurried == ["stopping"]
    assert not thread.is_alive() and server.failure is None
    assert "It is ready." in capsys.readouterr().err


def test_a_model_that_cannot_answer_ends_the_server_with_its_reason() -> None:
    engine, gate = SlowToWake("no memory"), Gate()
    server, listener = served(engine, gate, Ending())
    engine.woken.set()
    server.run(sockets=[listener])
    assert isinstance(server.failure, BackendError) and "no memory" in str(server.failure)
    assert gate.phase == "warming up", "it was never ready"


def test_a_signal_before_anything_is_served_leaves_in_order() -> None:
    ending = Ending()
    with pytest.raises(SystemExit) as left:
        ending.leave(signal.SIGTERM, None)
    assert left.value.code == 143 and ending.asked


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
