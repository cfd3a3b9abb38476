"""What `fineprint doctor` finds: GPUs of all conditions, who holds a lock, model servers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from app.cli import gpu_findings
from app.cli.finding import Finding
from app.cli.lock_holder import holder
from app.settings import Settings
from backend.errors import SensorError
from backend.hardware.types import GPUState, Temperature

GB = 1_000_000_000
HOLD = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process holds the lock on `path`; its id."""
    path.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    try:
        yield process.pid
    finally:
        process.communicate("")


def checks(run: Any, *arguments: str) -> dict[str, dict[str, Any]]:
    result = run("doctor", "--json", *arguments)
    lines = result.stdout.splitlines()
    assert len(lines) == 1, result.stdout
    body = json.loads(lines[0])
    assert result.exit_code == (0 if body["ok"] else 1)
    return {check["name"]: check for check in body["checks"]}


def test_names_who_holds_a_lock_and_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "kv" / "lock"
    assert holder(path) is None, "there is none"
    with held(path) as pid:
        told = holder(path)
        assert told is not None and str(pid) in told and "python" in told
    assert holder(path) is None and path.exists()


def test_a_lock_of_the_kv_store_is_seen(tmp_path: Path) -> None:
    from app.cli.examination import KV_LOCK
    from kvstore.tiers.folder import FolderLock

    lock = FolderLock(tmp_path)
    assert holder(tmp_path / KV_LOCK) is not None
    lock.release()


def test_a_running_server_is_no_fault(
    run: Any, data_dir: Path, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("FINEPRINT_PORT", str(taken.getsockname()[1]))
        with held(data_dir / "serve.lock") as server, held(data_dir / "kv" / "lock"):
            found = checks(run, "--model", str(tiny_llama))
        alone = checks(run, "--model", str(tiny_llama))
    assert f"process {server}" in found["server"]["detail"]
    assert found["port"]["ok"] and "a server runs" in found["port"]["detail"]
    assert found["kv folder"]["ok"] and "process" in found["kv folder"]["detail"]
    assert found["model"]["ok"] and "MB" in found["model"]["detail"]
    assert "triton" in found["torch"]["detail"]
    assert not alone["port"]["ok"], "something else has it"
    assert "FINEPRINT_PORT" in alone["port"]["detail"]


def test_a_damaged_model_is_named_with_its_remedy(run: Any, tmp_path: Path) -> None:
    model = tmp_path / "cut.gguf"
    model.write_bytes(b"GGUF\x03\x00\x00\x00")
    found = checks(run, "--model", str(model))["model"]
    assert not found["ok"] and "copy or download it again" in found["detail"]


def test_a_model_server_that_is_down_is_named(
    run: Any, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    monkeypatch.setenv("FINEPRINT_REMOTE_URLS", url)
    monkeypatch.setenv("FINEPRINT_REMOTE_MODEL", "big")
    found = checks(run, "--model", str(tiny_llama))["model servers"]
    assert not found["ok"] and url in found["detail"]
    assert "FINEPRINT_REMOTE_URLS" in found["detail"]


class Nvml:
    """Of a machine with the given GPUs."""

    driver = "575.57"
    broken = False

    def __init__(self, states: tuple[GPUState, ...], core_c: int | None = 50) -> None:
        self.known = states
        self.core_c = core_c
        self.open = True

    def states(self) -> tuple[GPUState, ...]:
        if self.broken:
            raise SensorError("a GPU answers no more: GPU is lost")
        return self.known

    def temperatures(self) -> tuple[Temperature, ...]:
        return (Temperature(self.known[0].uuid, "NVIDIA H200", self.core_c, self.core_c),)

    def close(self) -> None:
        self.open = False


def gpu(free: int = 100, links: int = 18, number: int = 0) -> GPUState:
    return GPUState(f"GPU-{number}", "NVIDIA H200", free * GB, 141 * GB, links)


def look(
    monkeypatch: pytest.MonkeyPatch,
    nvml: Nvml | None,
    *,
    cuda: bool = True,
    **settings: Any,
) -> dict[str, Finding]:
    def opened(*_: Any) -> Nvml:
        if nvml is None:
            raise SensorError("NVML can't be opened: Driver Not Loaded")
        return nvml

    def opened_one(*_: Any) -> Nvml:
        machine = opened()
        return Nvml(machine.known[:1], machine.core_c)

    monkeypatch.setattr("backend.hardware.nvml.Nvml", opened)
    monkeypatch.setattr(gpu_findings, "open_sensor", opened_one)
    monkeypatch.setattr(gpu_findings, "gpu_in_use", lambda _: "GPU-0" if cuda else None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    chosen = Settings(**settings)
    found = {one.name: one for one in gpu_findings.gpu_findings(chosen, 16 * GB)}
    assert nvml is None or not nvml.open, "closed again"
    return found


def test_a_good_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(monkeypatch, Nvml((gpu(),)))
    assert all(one.ok for one in found.values())
    assert found["gpu"].detail == "1 x NVIDIA H200, driver 575.57"
    assert "one GPU" in found["nvlink"].detail
    assert found["gpu memory"].detail == "100.0 of 141.0 GB free"
    assert found["temperature"].detail == "core 50 C, memory 50 C; no new work at 85 C"


def test_a_full_or_hot_gpu_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(monkeypatch, Nvml((gpu(free=17),), core_c=91))
    assert not found["gpu memory"].ok and "nvidia-smi" in found["gpu memory"].detail
    assert "18.0 GB are needed" in found["gpu memory"].detail
    assert not found["temperature"].ok and "cool down" in found["temperature"].detail
    room = look(monkeypatch, Nvml((gpu(free=19),)), kv_budget_mb=4000)
    assert not room["gpu memory"].ok, "the pages need room as well"


def test_links_of_several_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = look(monkeypatch, Nvml((gpu(), gpu(number=1))))
    assert pair["nvlink"].detail == "18 links active on each GPU"
    bus = look(monkeypatch, Nvml((gpu(links=0), gpu(links=0, number=1))))
    assert bus["nvlink"].ok and "PCIe" in bus["nvlink"].detail
    odd = look(monkeypatch, Nvml((gpu(), gpu(links=16, number=1))))
    assert not odd["nvlink"].ok and "nvidia-smi nvlink" in odd["nvlink"].detail


def test_a_gpu_that_torch_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    unused = look(monkeypatch, Nvml((gpu(),)), cuda=False)["gpu"]
    assert unused.ok and "CUDA build" in unused.detail, "the CPU does as well"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    wanted = look(monkeypatch, Nvml((gpu(),)), cuda=False, device="cuda")["gpu"]
    assert not wanted.ok and "Update the driver" in wanted.detail


def test_without_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the CPU is used" in look(monkeypatch, None, cuda=False)["gpu"].detail
    wanted = look(monkeypatch, None, cuda=False, device="cuda:1")["gpu"]
    assert not wanted.ok and "FINEPRINT_DEVICE=cpu" in wanted.detail
    blind = look(monkeypatch, None)["gpu"]
    assert blind.ok and "not watched" in blind.detail


def test_a_gpu_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml((gpu(),))
    nvml.broken = True
    found = look(monkeypatch, nvml)
    assert list(found) == ["gpu"] and not found["gpu"].ok and "GPU is lost" in found["gpu"].detail


def test_the_kernels_list_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.lock_holder.LOCKS", tmp_path / "none")
    with held(tmp_path / "lock"):
        assert holder(tmp_path / "lock") == "another process"
