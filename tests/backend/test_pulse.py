"""The pulse of a thread, felt from another."""

from __future__ import annotations

from backend.pulse import Pulse


def test_a_step_is_timed_from_its_beginning_and_rest_is_no_step() -> None:
    now = [100.0]
    pulse = Pulse(lambda: now[0])
    assert (pulse.steps, pulse.step_seconds) == (0, 0.0)
    pulse.beat()
    now[0] = 104.5
    assert (pulse.steps, pulse.step_seconds) == (1, 4.5)
    pulse.beat()
    assert (pulse.steps, pulse.step_seconds) == (2, 0.0)
    now[0] = 200.0
    pulse.rest()
    assert (pulse.steps, pulse.step_seconds) == (2, 0.0)
