"""Kernels of a step that take their places before the one before them is over.

With hundreds of small kernels after one another a GPU spends much of a step between them. With
programmatic dependent launch (CUDA programming guide, "Programmatic Dependent Launch and
Synchronization") a kernel's programs start when those of its predecessor have all started, may ask
for weights, and wait before they read what others write. For compute capability 9.0 and more. It
has not run on a GPU yet, so nothing overlaps without `EngineConfig.overlapped_launches`.
"""

from __future__ import annotations

import torch

__all__ = ["launch_options", "overlap_launches"]

_LEAST_CAPABILITY = (9, 0)

_overlapping = [False]


def overlap_launches(on: bool) -> None:
    """Whether kernels launched (or recorded) by this process from now on overlap."""
    _overlapping[0] = on


def launch_options(device: torch.device) -> dict[str, bool]:
    """What a kernel that calls `wait_for_others` is launched with."""
    if not _overlapping[0] or device.type != "cuda":
        return {"OVERLAP": False}
    if torch.cuda.get_device_capability(device) < _LEAST_CAPABILITY:
        return {"OVERLAP": False}
    return {"OVERLAP": True, "launch_pdl": True}
