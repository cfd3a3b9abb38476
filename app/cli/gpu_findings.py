"""What `fineprint doctor` says of GPUs: driver, torch, memory, links, temperature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from app.cli.finding import GIGABYTE, Finding
from app.hardware import gpu_in_use, open_sensor
from app.settings import Settings
from backend.errors import SensorError
from backend.hardware.heat import HeatGuard

if TYPE_CHECKING:
    from backend.hardware.nvml import Nvml
    from backend.hardware.types import GPUState

ROOM_BYTES = 2 * GIGABYTE
"""Beside the model's weights: CUDA itself, the work of one step, some KV."""


def gpu_findings(settings: Settings, model_bytes: int) -> Iterator[Finding]:
    """The GPUs of the machine and the one that the engine would use. `model_bytes`: size of the
    model's files, 0 when there is none."""
    from backend.hardware.nvml import Nvml

    try:
        nvml = Nvml()
    except SensorError as error:
        yield _without_nvml(settings, str(error))
        return
    try:
        states = nvml.states()
        yield _driver(settings, nvml, states)
        yield _links(states)
    except SensorError as error:
        yield Finding("gpu", False, f"{error}. Look at nvidia-smi; a restart may help.")
        return
    finally:
        nvml.close()
    yield from _in_use(settings, model_bytes)


def _without_nvml(settings: Settings, problem: str) -> Finding:
    if torch.cuda.is_available():
        detail = f"used without its sensors ({problem}): its temperature is not watched"
        return Finding("gpu", True, detail)
    if settings.device.startswith("cuda"):
        advice = "Install NVIDIA's driver, or set FINEPRINT_DEVICE=cpu."
        return Finding("gpu", False, f"FINEPRINT_DEVICE={settings.device}, but {problem}. {advice}")
    return Finding("gpu", True, f"none ({problem}); the CPU is used")


def _driver(settings: Settings, nvml: Nvml, states: tuple[GPUState, ...]) -> Finding:
    names = ", ".join(sorted({state.name for state in states})) or "no GPU"
    found = f"{len(states)} x {names}, driver {nvml.driver}"
    if not states or settings.device == "cpu" or torch.cuda.is_available():
        return Finding("gpu", True, found)
    if torch.version.cuda is None:
        advice = "this torch is built for the CPU. Install its CUDA build to use the GPU"
    else:
        advice = (
            f"torch {torch.__version__} (CUDA {torch.version.cuda}) can't use it. Update the "
            "driver, and look at CUDA_VISIBLE_DEVICES"
        )
    # A machine whose GPU is meant for others works well on its CPU.
    return Finding("gpu", not settings.device.startswith("cuda"), f"{found}; {advice}.")


def _links(states: tuple[GPUState, ...]) -> Finding:
    if len(states) < 2:
        return Finding("nvlink", True, "one GPU: none needed")
    counts = sorted({state.links for state in states})
    if counts == [0]:
        return Finding("nvlink", True, "none active: GPUs talk over PCIe, which is slower")
    if len(counts) > 1:
        told = ", ".join(f"{state.name} {state.links}" for state in states)
        return Finding(
            "nvlink", False, f"GPUs differ in active links ({told}). Look at nvidia-smi nvlink -s."
        )
    return Finding("nvlink", True, f"{counts[0]} links active on each GPU")


def _in_use(settings: Settings, model_bytes: int) -> Iterator[Finding]:
    try:
        if gpu_in_use(settings) is None or settings.remote_servers:
            return
        sensor = open_sensor(settings)
    except SensorError as error:
        detail = f"{error}. Choose a GPU that is there with FINEPRINT_DEVICE."
        yield Finding("gpu memory", False, detail)
        return
    try:
        (state,) = sensor.states()
        yield _memory(settings, state, model_bytes)
        yield _temperature(settings, sensor)
    except SensorError as error:
        yield Finding("temperature", True, f"unknown: {error}. The server does not watch it.")
    finally:
        sensor.close()


def _memory(settings: Settings, state: GPUState, model_bytes: int) -> Finding:
    needed = model_bytes + ROOM_BYTES + (settings.kv_budget_mb or 0) * 1_000_000
    free = f"{state.free_bytes / GIGABYTE:.1f} of {state.total_bytes / GIGABYTE:.1f} GB free"
    if state.free_bytes < needed:
        return Finding(
            "gpu memory",
            False,
            f"{free}; about {needed / GIGABYTE:.1f} GB are needed. Stop what uses the GPU "
            "(nvidia-smi), or choose a smaller model or FINEPRINT_KV_BUDGET_MB.",
        )
    return Finding("gpu memory", True, free)


def _temperature(settings: Settings, sensor: Nvml) -> Finding:
    guard = HeatGuard(sensor, pause_c=settings.gpu_pause_c, resume_c=settings.gpu_resume_c)
    state = guard.look()
    if state.hottest_c is None:
        why = state.problem or "this GPU tells none"
        return Finding("temperature", True, f"unknown: {why}. The server does not watch it.")
    (one,) = state.temperatures
    core, memory = ("unknown" if c is None else f"{c} C" for c in (one.core_c, one.memory_c))
    found = f"core {core}, memory {memory}; no new work at {guard.pause_c:g} C"
    if state.hot:
        return Finding("temperature", False, f"{found}. Let it cool down; look at its fans.")
    return Finding("temperature", True, found)
