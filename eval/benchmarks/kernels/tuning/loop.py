"""Tries every candidate of one kernel: right or wrong first, then how fast. It knows no kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from backend.errors import BackendError
from backend.ops.tuning import Attempt, Choice, Entry
from eval.benchmarks.kernels.case import Call, name_of

MARGIN = 0.01
"""What is in use stays unless another is faster by this share: below it is noise."""


@dataclass(frozen=True, slots=True)
class Tunable:
    """One op for heads of one width in one dtype, on one card.

    `small` and `large` run it with the given constants, on an odd input whose result is `expected`
    (within `tolerance`, relative, Frobenius norms) and on the one that is timed, described by
    `on`. `work` is that of one large call, in `unit` times milliseconds. `dtypes` are those that
    the result is used for. The first of the candidates is in use now.
    """

    op: str
    width: int
    dtypes: tuple[str, ...]
    on: str
    unit: str
    work: float
    candidates: tuple[Choice, ...]
    expected: torch.Tensor
    tolerance: float
    small: Callable[[Choice], torch.Tensor]
    large: Callable[[Choice], torch.Tensor]


def dtypes_of(dtype: torch.dtype) -> tuple[str, ...]:
    """Dtypes that a measurement in this one serves: 16-bit formats take the same room."""
    return ("bfloat16", "float16") if dtype.itemsize == 2 else (name_of(dtype),)


def tune(
    tunable: Tunable,
    time_ms: Callable[[Call], float],
    source: str,
    on_step: Callable[[str], None] = lambda _: None,
) -> Entry:
    """The fastest candidate that is right, with all attempts. Raises BackendError when none is."""
    attempts: list[Attempt] = []
    for number, choice in enumerate(tunable.candidates, 1):
        attempt = _attempt(tunable, choice, time_ms)
        told = attempt.problem or f"{attempt.speed:.6g} {tunable.unit}"
        place = f"{tunable.op}, width {tunable.width}, {number} of {len(tunable.candidates)}"
        on_step(f"{place}: {dict(choice)}: {told}")
        attempts.append(attempt)
    measured = [(one.speed, one.choice) for one in attempts if one.speed is not None]
    if not measured:
        raise BackendError(
            f"No candidate of {tunable.op} at width {tunable.width} runs: {attempts[0].problem}"
        )
    speed, choice = max(measured, key=lambda one: one[0])
    in_use = attempts[0]
    if in_use.speed is not None and speed < in_use.speed * (1 + MARGIN):
        choice = in_use.choice
    return Entry(
        tunable.op, tunable.width, tunable.dtypes, choice, tunable.unit, tunable.on, source,
        tuple(attempts),
    )  # fmt: skip


def _attempt(tunable: Tunable, choice: Choice, time_ms: Callable[[Call], float]) -> Attempt:
    # Here, because Triton decides at import whether it compiles or interprets.
    from triton.errors import TritonError

    try:
        out = tunable.small(choice)
        difference = out.float() - tunable.expected.float()
        error = float(difference.norm() / tunable.expected.float().norm())
        # Not "greater than": no number is no pass.
        if not error <= tunable.tolerance:
            return Attempt(choice, problem=f"wrong: relative error {error:.3g}")
        ms = time_ms(lambda: tunable.large(choice))
    except torch.AcceleratorError:
        # The device is lost to this process: whatever came next would fail too.
        raise
    except (TritonError, RuntimeError) as error:
        # Too much shared memory, too few registers, or a pass of the compiler gives up.
        return Attempt(choice, problem=(str(error).splitlines() or [type(error).__name__])[0])
    return Attempt(choice, speed=float(f"{tunable.work / ms:.6g}"))
