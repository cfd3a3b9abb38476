"""The benchmark's own server: it is there, it is fresh, and it goes with the benchmark."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from eval.benchmarks.cli import commands
from eval.benchmarks.mixed.serving import served
from eval.errors import PeerError

KEEP = """
import time
from eval.benchmarks.mixed.serving import served
with served({model!r}) as url:
    print(url, flush=True)
    time.sleep(120)
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Settings of a small server; the data folder that it must leave alone."""
    monkeypatch.setenv("FINEPRINT_PRECISION", "float32")
    monkeypatch.setenv("FINEPRINT_KV_BUDGET_MB", "64")
    monkeypatch.setenv("FINEPRINT_THREADS", "1")
    monkeypatch.setenv("FINEPRINT_DATA_DIR", str(tmp_path / "mine"))
    return tmp_path / "mine"


def test_one_command_starts_a_fresh_server_and_measures_it(tiny_llama: Path, small: Path) -> None:
    arguments = ["mixed", "--serve", "--model", str(tiny_llama), "--tokenizer", str(tiny_llama)]
    arguments += ["--requests", "2", "--lengths", "1K", "--rounds", "1", "--cells", "cold"]
    result = CliRunner().invoke(commands, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    server = record["config"]["server"]
    assert (server["served_here"], server["status"]) == (True, "ready")
    assert server["settings"]["model"] == tiny_llama.name
    assert (server["settings"]["threads"], server["settings"]["precision"]) == (1, "float32")
    assert record["results"]["cold"]["label"] == "cold"
    assert record["results"]["cold"]["failed"] == 0
    assert not small.exists(), "the user's own documents are left alone"


def test_the_server_does_not_outlive_a_benchmark_that_is_stopped(
    tiny_llama: Path, small: Path
) -> None:
    program = KEEP.format(model=str(tiny_llama))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert httpx.get(f"{url}/healthz", trust_env=False).is_success
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", trust_env=False)


def test_a_server_that_does_not_start_is_told_with_its_own_words(small: Path) -> None:
    with pytest.raises(PeerError, match="did not start.*no-such-model"), served("no-such-model"):
        pass
