"""The benchmark's own server: it is there, it is fresh, and it goes with the benchmark."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

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


def test_a_server_with_a_fresh_folder_that_ends_with_the_block(
    tiny_llama: Path, small: Path
) -> None:
    with served(str(tiny_llama)) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert client.get("/readyz").json()["status"] == "ready"
        assert client.get("/api/v1/documents").json()["total"] == 0
    assert not small.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", trust_env=False)


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
