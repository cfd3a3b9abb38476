"""What a measurement was made with and on: versions, processor, GPU, git revision.

A figure without this record can't be compared with another one.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import psutil

# Those that time, rank or score: another version of one of them may give other figures.
_PACKAGES = (
    "fineprint", "torch", "triton", "numpy", "tokenizers", "scikit-learn", "rank-bm25", "rjieba",
    "cn2an", "rapidfuzz",
)  # fmt: skip
_SOURCE = Path(__file__).resolve().parents[1]
_CGROUP = Path("/sys/fs/cgroup")
_CPU_INFO = Path("/proc/cpuinfo")
_GIT_SECONDS = 20


def environment(device: str = "cpu") -> dict[str, object]:
    """Plain values, ready for JSON. `device` is the engine's: with "cuda…" the GPU is named.

    `cores` and `memory_bytes` are what this process may use: a container's limits where they are
    tighter than the machine's. `load` is the machine's load average of the last minute, so that a
    measurement beside other work can be told; None where the system has none.
    """
    return {
        "versions": {"python": platform.python_version()} | _versions(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": _cores(),
        "memory_bytes": _memory(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "gpu": _gpu(device),
        "git": _revision(),
    }


def _cores() -> float:
    """Processors of the affinity mask, fewer under a CPU quota (which may be a fraction)."""
    process = psutil.Process()
    # Not every system has an affinity mask.
    mask = process.cpu_affinity() if hasattr(process, "cpu_affinity") else None
    cores = float(len(mask) if mask else psutil.cpu_count() or 1)
    quota, _, period = _limit("cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit():
        cores = min(cores, int(quota) / int(period))
    return int(cores) if cores == int(cores) else round(cores, 2)


def _memory() -> int:
    total = int(psutil.virtual_memory().total)
    limit = _limit("memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def _limit(name: str) -> str:
    """A limit of this container (cgroup v2); "" where there is none."""
    try:
        return (_CGROUP / name).read_text("utf-8").strip()
    except OSError:
        return ""


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _processor() -> str:
    try:
        lines = _CPU_INFO.read_text("utf-8").splitlines()
    except OSError:
        # Not Linux, or a container without /proc.
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    # On ARM the file names no model.
    return next(named, "") or platform.processor() or platform.machine()


def _gpu(device: str) -> dict[str, object] | None:
    if not device.startswith("cuda"):
        return None
    import torch

    properties = torch.cuda.get_device_properties(torch.device(device))
    return {
        "name": properties.name,
        "memory_bytes": properties.total_memory,
        "capability": f"{properties.major}.{properties.minor}",
        "cuda": torch.version.cuda,
    }


def _revision() -> dict[str, object]:
    """The commit of the source tree and whether tracked files were changed since; None with the
    reason in `problem` where git can't tell, as outside of a checkout."""
    try:
        if Path(_git("rev-parse", "--show-toplevel")).resolve() != _SOURCE:
            # Installed into some other project's checkout: its commit is not ours.
            return _unknown("the source tree is not a git checkout")
        revision = _git("rev-parse", "HEAD")
        changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    except FileNotFoundError:
        return _unknown("git is not installed")
    except subprocess.TimeoutExpired:
        return _unknown(f"git did not answer within {_GIT_SECONDS} s")
    except subprocess.CalledProcessError as error:
        return _unknown(str(error.stderr).strip().partition("\n")[0] or str(error))
    return {"revision": revision, "changed": changed}


def _git(*arguments: str) -> str:
    # Without optional locks the question does not disturb a commit that is being made.
    command = ["git", "--no-optional-locks", "-C", str(_SOURCE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_GIT_SECONDS)
    return done.stdout.strip()


def _unknown(problem: str) -> dict[str, object]:
    return {"revision": None, "changed": None, "problem": problem}
