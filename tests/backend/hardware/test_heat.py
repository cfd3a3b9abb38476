"""The two limits, and a sensor that fails."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import SensorError
from backend.hardware.heat import FORGIVEN_LOOKS, HeatGuard
from backend.hardware.types import Temperature

Step = int | None | str
"""Degrees of the core, None for a card that tells none, or what the sensor fails with."""


class Thermometer:
    """Gives one step after the other."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = iter(steps)
        self.closed = False

    def temperatures(self) -> tuple[Temperature, ...]:
        step = next(self.steps)
        if isinstance(step, str):
            raise SensorError(step)
        return (Temperature("GPU-1", "H200", step, None), Temperature("GPU-2", "H200", 40, 41))

    def close(self) -> None:
        self.closed = True


def looks(steps: Sequence[Step]) -> list[bool]:
    guard = HeatGuard(Thermometer(steps), pause_c=85, resume_c=75)
    return [guard.look().hot for _ in steps]


def test_pauses_at_the_upper_limit_and_goes_on_at_the_lower() -> None:
    steps = [60, 84, 85, 90, 84, 76, 75, 80, 84, 85]
    assert looks(steps) == [False, False, True, True, True, True, False, False, False, True]


def test_the_hotter_of_core_and_memory_of_any_gpu_counts() -> None:
    class Memory:
        def temperatures(self) -> tuple[Temperature, ...]:
            return (Temperature("GPU-1", "H200", 50, 52), Temperature("GPU-2", "H200", 60, 86))

        def close(self) -> None:
            return None

    state = HeatGuard(Memory(), pause_c=85, resume_c=75).look()
    assert state.hot and state.hottest_c == 86


def test_a_card_without_sensors_is_never_hot_and_hides_no_other() -> None:
    class Mute:
        def temperatures(self) -> tuple[Temperature, ...]:
            return (Temperature("GPU-1", "T4", None, None),)

        def close(self) -> None:
            return None

    mute = HeatGuard(Mute(), pause_c=85, resume_c=75).look()
    assert not mute.hot and mute.hottest_c is None
    assert HeatGuard(Thermometer([None]), pause_c=30, resume_c=20).look().hot, "the second: 41"


def test_a_failing_sensor_ends_a_pause_only_after_several_looks() -> None:
    guard = HeatGuard(Thermometer([90, "lost", 80, *["lost"] * 4, 80]), pause_c=85, resume_c=75)
    seen = [guard.look() for _ in range(8)]
    assert [state.hot for state in seen[:3]] == [True, True, True], "80 is above the lower limit"
    failing = [state.hot for state in seen[3:7]]
    assert failing == [True] * (FORGIVEN_LOOKS - 1) + [False] * (5 - FORGIVEN_LOOKS)
    assert seen[1].problem == "lost" and seen[1].temperatures == () and seen[2].problem == ""
    assert seen[7].hot is False, "80 is below the upper limit: it does not come back"
    assert seen[7].errors == 5


def test_a_broken_sensor_never_pauses() -> None:
    assert looks(["broken"] * 10) == [False] * 10


@given(st.lists(st.integers(20, 110), min_size=1, max_size=60))
def test_hot_begins_at_the_upper_limit_and_ends_at_the_lower(degrees: list[int]) -> None:
    states = [False, *looks(degrees)]
    # The second card of the thermometer is never above 41.
    for (before, now), value in zip(itertools.pairwise(states), degrees, strict=True):
        if now and not before:
            assert value >= 85
        elif before and not now:
            assert value <= 75
        elif now:
            assert value > 75
        else:
            assert value < 85


def test_closes_its_sensor() -> None:
    sensor = Thermometer([])
    HeatGuard(sensor, pause_c=85, resume_c=75).close()
    assert sensor.closed


@pytest.mark.gpu
def test_nvml_reads_the_gpus_that_torch_uses() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    from backend.hardware.nvml import Nvml

    nvml = Nvml([str(torch.cuda.get_device_properties(0).uuid)])
    (temperature,) = nvml.temperatures()
    (state,) = nvml.states()
    nvml.close()
    assert temperature.name == torch.cuda.get_device_name(0) == state.name
    assert temperature.core_c is not None and 10 < temperature.core_c < 110
    assert 0 < state.free_bytes <= state.total_bytes
