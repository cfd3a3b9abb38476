"""The mixed load against a real server: the application on a socket, with a tiny random model."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner, Result

from app.api import create_app
from app.services import open_services
from app.settings import Settings
from eval.benchmarks.cli import commands
from eval.benchmarks.documents import STRETCH

Bench = Callable[..., Result]
LINE = len("[abcdefgh.9999] \n") + STRETCH
"""Most tokens of a line, a character a token: a document is cut to its length by whole lines."""


@pytest.fixture(scope="module")
def url(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("data"),
        model=str(tiny_llama),
        precision="float32",
        block_tokens=256,
        kv_budget_mb=64,
        threads=1,
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    with open_services(settings, serve=True) as services:
        server = uvicorn.Server(
            uvicorn.Config(create_app(services), log_config=None, access_log=False)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        end = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.02)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)
    listener.close()


@pytest.fixture
def bench(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """bench("--url", …) -> the command's result."""
    monkeypatch.setenv("FINEPRINT_MODEL", str(tiny_llama))
    monkeypatch.setenv("FINEPRINT_DATA_DIR", str(tmp_path / "own"))

    def run(*arguments: str) -> Result:
        small = ["--requests", "5", "--lengths", "1K,2K", "--concurrency", "2", "--rounds", "1"]
        return CliRunner().invoke(
            commands, ["mixed", "--preset", "cpu", *small, *arguments], catch_exceptions=False
        )

    return run


def record_in(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def cells_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for done in record["rounds"] for cell in done["cells"]]


def documents(url: str) -> int:
    total: int = httpx.get(f"{url}/api/v1/documents", trust_env=False).json()["total"]
    return total


def test_cold_and_mixed_are_measured_and_nothing_is_left_behind(
    url: str, bench: Bench, tmp_path: Path
) -> None:
    out = tmp_path / "record.json"
    record = record_in(bench("--url", url, "--json", "--out", str(out)))
    assert json.loads(out.read_text("utf-8")) == record
    assert record["bench"] == "mixed" and record["config"]["server"]["status"] == "ready"
    cold, mixed = cells_of(record)
    assert (cold["label"], cold["reuse"]["source"]) == ("cold", "engine counters")
    assert (mixed["label"], mixed["claim"]) == ("mixed", "mixed")
    # Two of five documents, of one length or the other.
    assert 0.2 < mixed["hit_rate"] < 0.65
    for cell in (cold, mixed):
        assert len(cell["requests"]) == 5 and cell["peak_in_flight"] == 2
        for request in cell["requests"]:
            assert request["fault"] is None, request["fault"]
            timeline = request["timeline"]
            order = ["arrival", "sent", "accepted", "askable", "first_text", "warm_text", "done"]
            assert sorted(order, key=lambda name: timeline[name]) == order
            assert request["ttft_grounded_ms"] >= request["read_ms"] > 0
            planned = request["planned_tokens"]
            assert planned - LINE < request["document_tokens"] <= planned
            (warm,) = [answer for answer in request["answers"] if answer["role"] == "warm"]
            assert request["ttft_warm_ms"] == pytest.approx(warm["ttft_ms"], abs=500)
            assert warm["server_timings"]["ttft_ms"] <= warm["ttft_ms"]
    assert sum(request["known"] for request in mixed["requests"]) == 2
    answers = record["results"]["cold"]["answers"]
    assert answers["right"] == answers["asked"], "every planted fact was quoted"
    assert documents(url) == 0


def test_the_same_load_twice_is_warm_by_itself_and_refused_as_cold(
    url: str, bench: Bench, tmp_path: Path
) -> None:
    load = tmp_path / "load.jsonl"
    written = json.loads(
        bench(
            *("--write-load", str(load), "--cells", "cold", "--requests", "3"),
            *("--seed", "7", "--json"),
        ).stdout
    )
    assert written == {"load": str(load), "requests": 3, "seed": 7}
    send = ("--url", url, "--load", str(load), "--json")
    (first,) = cells_of(record_in(bench(*send, "--keep", "--claim", "cold")))
    assert (first["label"], first["hit_rate"]) == ("cold", 0.0)
    (again,) = cells_of(record_in(bench(*send, "--keep")))
    assert (again["label"], again["hit_rate"]) == ("warm", 1.0)
    for request in again["requests"]:
        assert request["known"] and request["reused_tokens"] == request["document_tokens"]
        assert request["ttft_grounded_ms"] == request["ttft_any_ms"]
    refused = bench(*send, "--claim", "cold")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["error"]["code"] == "not_cold"
    assert "was to be cold" in refused.stderr and "had the documents of" in refused.stderr
    delete_all(url)
    (after,) = cells_of(record_in(bench(*send)))
    assert after["label"] == "cold", "deleting a document drops what was read of it"


def test_an_openai_server_gets_plain_prompts_and_too_long_ones_are_failures(
    url: str, bench: Bench
) -> None:
    result = bench(
        *("--url", f"{url}/v1", "--api", "openai", "--model", model_of(url), "--cells", "cold"),
        *("--lengths", "1K,6K", "--output-tokens", "8", "--json"),
    )
    record = record_in(result)
    (cell,) = cells_of(record)
    by_kind = {request["kind"]: request for request in cell["requests"]}
    assert by_kind["short"]["fault"] is None
    assert by_kind["short"]["ttft_any_ms"] == by_kind["short"]["ttft_grounded_ms"] > 0
    assert by_kind["long"]["fault"]["code"] == "context_length_exceeded"
    assert "4,096" in by_kind["long"]["fault"]["message"]
    kinds = record["results"]["cold"]["kinds"]
    assert (kinds["long"]["failed"], kinds["short"]["failed"]) == (1, 0)
    assert kinds["long"]["metrics"]["ttft_any_ms"]["p50"] is None


def test_people_get_tables(url: str, bench: Bench) -> None:
    result = bench("--url", url, "--rate", "20", "--seed", "3")
    assert result.exit_code == 0, result.output
    assert "cold load, measured: cold (hit rate 0.000)" in result.stdout
    assert "mixed load, measured: mixed" in result.stdout
    assert "ttft_grounded" in result.stdout
    assert "round 1 of 1: mixed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "bad_parameter"),
        (("--url", "http://127.0.0.1:1", "--lengths", "x"), "bad_parameter"),
        (("--url", "http://127.0.0.1:1", "--load", "/no/such/load"), "bad_dataset"),
    ],
)
def test_bad_input_ends_with_status_2(bench: Bench, arguments: tuple[str, ...], code: str) -> None:
    result = bench(*arguments, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == code


def test_a_server_that_is_not_there_ends_with_status_1(bench: Bench) -> None:
    result = bench("--url", "http://127.0.0.1:1", "--seed", "1", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "peer_failed"


def model_of(url: str) -> str:
    name: str = httpx.get(f"{url}/v1/models", trust_env=False).json()["data"][0]["id"]
    return name


def delete_all(url: str) -> None:
    with httpx.Client(base_url=f"{url}/api/v1", trust_env=False) as client:
        for document in client.get("/documents", params={"limit": 100}).json()["data"]:
            client.delete(f"/documents/{document['id']}")
