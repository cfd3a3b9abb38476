"""Runs the cases: first right or wrong, then how fast, never fast and wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

import torch

from eval.benchmarks.kernels.case import Call, Case, Contender, ModelShape, Setup, Status
from eval.benchmarks.kernels.ceilings import measure_ceilings
from eval.benchmarks.kernels.clock import time_ms
from eval.benchmarks.kernels.registry import MakeCases

Fields = dict[str, object]
_RANK: tuple[Status, ...] = ("measured", "compared", "unavailable", "wrong")
_MEDIANS = ("ms", "gflops", "gflops_share", "gbytes_per_s", "gbytes_share")
_WORST = ("relative_error", "max_error")


@dataclass(frozen=True, slots=True)
class Result:
    """One contender on one case in one round. Errors against the reference: `relative_error` of
    Frobenius norms, `max_error` of a single number. Shares are of the ceilings of the same round.
    What was not timed has None there; `why` says why a peer is unavailable."""

    op: str
    shape: str
    dtype: str
    name: str
    peer: bool
    status: Status
    relative_error: float | None = None
    max_error: float | None = None
    ms: float | None = None
    gflops: float | None = None
    gflops_share: float | None = None
    gbytes_per_s: float | None = None
    gbytes_share: float | None = None
    why: str = ""


def measure(
    ops: Mapping[str, MakeCases],
    device: torch.device,
    shapes: tuple[ModelShape, ...],
    *,
    rounds: int,
    seed: int,
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[list[Fields], Fields]:
    """Every round's figures on fresh inputs, and their medians (of errors the worst)."""
    ceilings: list[dict[str, float]] = []
    results: list[list[Result]] = []
    for number in range(1, rounds + 1):
        setup = Setup(device, seed * rounds + number, shapes)
        on_step(f"round {number} of {rounds}: ceilings")
        ceilings.append(measure_ceilings(setup))
        results.append([])
        for name, make in ops.items():
            on_step(f"round {number} of {rounds}: {name}")
            for case in make(setup):
                results[-1] += compare(case, device, ceilings[-1])
    records: list[Fields] = [
        {"round": number, "ceilings": limits, "figures": [_told(one) for one in found]}
        for number, (limits, found) in enumerate(zip(ceilings, results, strict=True), 1)
    ]
    return records, summarise(ceilings, results)


def _told(result: Result) -> Fields:
    """The result without what was not measured."""
    return {key: value for key, value in asdict(result).items() if value not in (None, "")}


def compare(case: Case, device: torch.device, ceilings: Mapping[str, float]) -> list[Result]:
    """All contenders of one case. A peer that refuses the input is unavailable; ours must not."""
    with torch.inference_mode():
        expected = case.reference().float()
        return [_compare(case, one, expected, device, ceilings) for one in case.contenders]


def _compare(
    case: Case,
    contender: Contender,
    expected: torch.Tensor,
    device: torch.device,
    ceilings: Mapping[str, float],
) -> Result:
    blank = Result(case.op, case.shape, case.dtype, contender.name, contender.peer, "compared")
    if contender.peer:
        out, why = _attempt(contender.call)
        if out is None:
            return replace(blank, status="unavailable", why=why)
    else:
        out = contender.call()
    difference = out.float() - expected
    relative = float(difference.norm() / expected.norm())
    largest = float(difference.abs().max())
    # Not "greater than": no number is no pass.
    compared = replace(blank, relative_error=relative, max_error=largest)
    if not relative <= case.tolerance:
        return replace(compared, status="wrong")
    if not case.timed:
        return compared
    ms = time_ms(contender.call, device, contender.others)
    gflops, gbytes = case.flops / ms / 1e6, contender.bytes / ms / 1e6
    return replace(
        compared,
        status="measured",
        ms=ms,
        gflops=gflops,
        gflops_share=gflops / ceilings[f"gemm_{contender.gemm}_gflops"],
        gbytes_per_s=gbytes,
        gbytes_share=gbytes / ceilings["read_gbytes_per_s"],
    )


def _attempt(call: Call) -> tuple[torch.Tensor | None, str]:
    """A peer's output, or the first line of what it says against the input. torch warns why each
    backend won't do before it raises; the error is enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(), ""
        except (RuntimeError, NotImplementedError) as error:
            return None, (str(error).splitlines() or [type(error).__name__])[0]


def summarise(
    ceilings: Sequence[Mapping[str, float]], results: Sequence[Sequence[Result]]
) -> Fields:
    """Medians of speeds and ceilings, the worst of errors and of statuses."""
    groups: dict[tuple[str, str, str, str], list[Result]] = {}
    for found in results:
        for one in found:
            groups.setdefault((one.op, one.shape, one.dtype, one.name), []).append(one)
    rows: list[Fields] = []
    for found in groups.values():
        row = asdict(found[0])
        row["status"] = max((one.status for one in found), key=_RANK.index)
        for key in (*_MEDIANS, *_WORST):
            values = [value for one in found if (value := getattr(one, key)) is not None]
            choose = max if key in _WORST else median
            row[key] = float(choose(values)) if values else None
        rows.append(row)
    limits = {key: median(one[key] for one in ceilings) for key in ceilings[0]}
    wrong = [f"{r['op']} {r['name']}, {r['shape']}" for r in rows
             if r["status"] == "wrong" and not r["peer"]]  # fmt: skip
    return {"ceilings": limits, "kernels": rows, "wrong": wrong}
