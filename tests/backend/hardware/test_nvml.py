"""The GPUs through NVML, with its functions answered from a table of cards."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from backend.errors import SensorError
from backend.hardware.nvml import Nvml
from backend.hardware.types import GPUState, Temperature


def card(uuid: str, core: int | None, memory: int | None, links: int = 0) -> SimpleNamespace:
    return SimpleNamespace(uuid=uuid, core=core, memory=memory, links=links, lost=False)


@dataclass
class Machine:
    """Its cards by UUID, and how often NVML is open."""

    cards: dict[str, SimpleNamespace]
    opened: dict[str, int]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """An H200, an old card without a memory sensor, and a part (MIG) of the first."""
    known = {"GPU-a": card("GPU-a", 62, 70, links=18), "GPU-b": card("GPU-b", 41, None)}
    opened = {"count": 0}

    def ask(handle: Any) -> Any:
        if handle.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return handle

    def by_uuid(uuid: str) -> Any:
        if uuid == "MIG-c":
            return "a part"
        if uuid not in known:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return known[uuid]

    def temperature(handle: Any, sensor: int) -> int:
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        if ask(handle).core is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        degrees: int = handle.core
        return degrees

    def fields(handle: Any, ids: list[int]) -> list[Any]:
        assert ids == [pynvml.NVML_FI_DEV_MEMORY_TEMP]
        there = ask(handle).memory is not None
        status = pynvml.NVML_SUCCESS if there else pynvml.NVML_ERROR_NOT_SUPPORTED
        return [SimpleNamespace(nvmlReturn=status, value=SimpleNamespace(uiVal=handle.memory or 0))]

    def link(handle: Any, number: int) -> int:
        if number >= max(handle.links, 1):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        if not handle.links:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 1

    def close() -> None:
        opened["count"] -= 1

    answers: dict[str, Any] = {
        "nvmlInit": lambda: opened.update(count=opened["count"] + 1),
        "nvmlShutdown": close,
        "nvmlSystemGetDriverVersion": lambda: b"575.57",
        "nvmlDeviceGetCount": lambda: len(known),
        "nvmlDeviceGetHandleByIndex": lambda index: list(known.values())[index],
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda part: known["GPU-a"],
        "nvmlDeviceGetUUID": lambda handle: ask(handle).uuid,
        "nvmlDeviceGetName": lambda handle: "NVIDIA H200",
        "nvmlDeviceGetTemperature": temperature,
        "nvmlDeviceGetFieldValues": fields,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(free=5, total=9),
        "nvmlDeviceGetNvLinkState": link,
    }
    for name, function in answers.items():
        monkeypatch.setattr(pynvml, name, function)
    return Machine(known, opened)


def test_reads_the_cards_that_are_named(machine: Machine) -> None:
    nvml = Nvml(["b", "GPU-a"])
    assert nvml.temperatures() == (
        Temperature("GPU-b", "NVIDIA H200", 41, None),
        Temperature("GPU-a", "NVIDIA H200", 62, 70),
    )
    assert nvml.driver == "575.57"
    nvml.close()
    nvml.close()
    assert machine.opened == {"count": 0}


def test_without_names_it_reads_all(machine: Machine) -> None:
    assert Nvml().states() == (
        GPUState("GPU-a", "NVIDIA H200", 5, 9, 18),
        GPUState("GPU-b", "NVIDIA H200", 5, 9, 0),
    )


def test_a_part_of_a_card_has_the_temperature_of_the_whole(
    machine: Machine,
) -> None:
    for name in ("c", "MIG-c"):
        assert Nvml([name]).temperatures()[0].core_c == 62


def test_an_unknown_card_is_refused_and_nvml_closed(machine: Machine) -> None:
    with pytest.raises(SensorError, match="no GPU d"):
        Nvml(["d"])
    assert machine.opened == {"count": 0}


def test_a_card_without_any_sensor(machine: Machine) -> None:
    machine.cards["GPU-b"].core = None
    assert Nvml(["GPU-b"]).temperatures()[0].hottest_c is None


def test_a_lost_card_is_an_error_of_ours(machine: Machine) -> None:
    nvml = Nvml(["GPU-a"])
    machine.cards["GPU-a"].lost = True
    with pytest.raises(SensorError, match="answers no more"):
        nvml.temperatures()


def test_without_the_library_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    with pytest.raises(SensorError, match="can't be opened: NVML Shared Library Not Found"):
        Nvml()
