"""When new work may begin, and a watch that never fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import BadSettings, NoNewWork
from app.gate import Gate
from app.hardware import HeatWatch, open_heat_watch
from app.settings import Settings, load_settings
from backend.errors import SensorError
from backend.hardware.heat import HeatGuard
from backend.hardware.types import Temperature


class Thermometer:
    """`degrees` of the core; None: it fails."""

    def __init__(self, degrees: int | None) -> None:
        self.degrees = degrees
        self.looks = 0
        self.closed = False
        self.fault: BaseException | None = None

    def temperatures(self) -> tuple[Temperature, ...]:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        if self.degrees is None:
            raise SensorError("a GPU answers no more: Unknown Error")
        return (Temperature("GPU-1", "NVIDIA H200", self.degrees, self.degrees - 4),)

    def close(self) -> None:
        self.closed = True


def gate_at(degrees: int | None) -> tuple[Gate, Thermometer]:
    sensor = Thermometer(degrees)
    guard = HeatGuard(sensor, pause_c=85, resume_c=75)
    guard.look()
    return Gate(HeatWatch(guard)), sensor


def test_a_hot_gpu_closes_it_with_temperature_and_limits() -> None:
    gate, sensor = gate_at(86)
    assert not gate.may_begin
    with pytest.raises(NoNewWork, match="core 86 C, memory 82 C; .* 85 C until 75") as e:
        gate.require_open()
    assert (e.value.status, e.value.code) == (503, "gpu_hot")
    sensor.degrees = 75
    assert gate.heat.guard is not None
    gate.heat.guard.look()
    gate.require_open()
    assert gate.may_begin


def test_a_broken_sensor_leaves_it_open_and_says_so() -> None:
    gate, _ = gate_at(None)
    gate.require_open()
    assert "unknown" in gate.heat.describe() and "Unknown Error" in gate.heat.describe()


def test_stopping_has_no_way_back() -> None:
    gate = Gate()
    gate.warming_up()
    gate.require_open()
    assert gate.phase == "warming up" and gate.may_begin
    gate.stop()
    gate.serving()
    assert gate.phase == "stopping" and not gate.may_begin
    with pytest.raises(NoNewWork) as raised:
        gate.require_open()
    assert raised.value.code == "server_stopping"


def test_the_watch_looks_again_and_again_until_it_is_closed() -> None:
    sensor = Thermometer(60)
    watch = HeatWatch(HeatGuard(sensor, pause_c=85, resume_c=75), every_s=0.01)
    watch.start()
    sensor.degrees = 99
    end = time.monotonic() + 5
    while not watch.state.hot:
        assert time.monotonic() < end
        time.sleep(0.01)
    watch.close()
    looks = sensor.looks
    time.sleep(0.05)
    assert sensor.closed and sensor.looks == looks


def test_a_look_that_fails_in_any_way_is_a_failed_look() -> None:
    sensor = Thermometer(90)
    guard = HeatGuard(sensor, pause_c=85, resume_c=75)
    watch = HeatWatch(guard, every_s=0.01, forget_s=600)
    watch.start()
    assert watch.state.hot
    sensor.fault = UnicodeDecodeError("utf8", b"x", 0, 1, "bad")
    wait_for(lambda: not watch.state.hot)
    assert "UnicodeDecodeError" in watch.describe() and watch.state.errors >= 3
    sensor.fault = None
    wait_for(lambda: watch.state.hot)
    watch.close()


def test_what_a_dead_thread_has_seen_is_forgotten_and_the_thread_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    sensor = Thermometer(90)
    watch = HeatWatch(HeatGuard(sensor, pause_c=85, resume_c=75), every_s=0.01, forget_s=0.2)
    gate = Gate(watch)
    watch.start()
    # The one thing that ends a thread without a word.
    sensor.fault = SystemExit()
    wait_for(lambda: gate.may_begin)
    wait_for(lambda: "has ended" in watch.describe())
    assert "'heat'" in watch.describe() and watch.state.temperatures == ()
    watch.close()


def test_what_was_seen_before_a_look_that_hangs_is_forgotten() -> None:
    class Hanging(Thermometer):
        go = threading.Event()

        def temperatures(self) -> tuple[Temperature, ...]:
            if self.looks:
                assert self.go.wait(60)
            return super().temperatures()

    sensor = Hanging(90)
    watch = HeatWatch(HeatGuard(sensor, pause_c=85, resume_c=75), every_s=0.01, forget_s=0.2)
    watch.start()
    wait_for(lambda: not watch.state.hot)
    assert "hangs" in watch.describe()
    sensor.go.set()
    wait_for(lambda: watch.state.hot)
    watch.close()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def test_without_a_gpu_it_is_off_and_says_why(tmp_path: Path) -> None:
    watch = open_heat_watch(Settings(data_dir=tmp_path, device="cpu"))
    watch.start()
    assert watch.describe() == "off: no GPU is used" and not watch.state.hot
    remote = Settings(data_dir=tmp_path, remote_urls="http://10.0.0.5/v1", remote_model="m")
    assert "other servers" in open_heat_watch(remote).describe()
    watch.close()


def test_limits_the_wrong_way_round_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_GPU_PAUSE_C", "70")
    with pytest.raises(BadSettings, match="FINEPRINT_GPU_RESUME_C must be below"):
        load_settings()
