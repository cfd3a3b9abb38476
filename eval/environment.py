"""What a measurement was made with and on: versions, processor, GPU, git revision.

A figure without this record can't be compared with another one.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

_PACKAGES = ("fineprint", "torch", "triton", "numpy", "scikit-learn", "rank-bm25")
_SOURCE = Path(__file__).resolve().parents[1]


def environment(device: str = "cpu") -> dict[str, object]:
    """Plain values, ready for JSON. `device` is the engine's: with "cuda…" the GPU is named."""
    return {
        "versions": {"python": platform.python_version()} | _versions(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": _gpu(device),
        "git": _revision(),
    }


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
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


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
    """The commit of the source tree and whether it was changed since; empty outside a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(_SOURCE), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return {
            "revision": git("rev-parse", "HEAD"),
            "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.CalledProcessError):
        return {"revision": None, "changed": None}
