"""Opens one engine after another and sends each arm's loads, round by round."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial

import torch

from backend.engine import Engine
from eval.benchmarks.dense_attention import choose
from eval.benchmarks.engine_settings import (
    EngineChoice,
    chosen_config,
    chosen_parts,
    engine_fields,
)
from eval.benchmarks.gpu_memory import memory_fields, start
from eval.benchmarks.mixed.choices import CELLS
from eval.benchmarks.mixed.load import LoadShape
from eval.benchmarks.protocol.arms import FULL, Arm, arm_config
from eval.benchmarks.protocol.cell import run_cell
from eval.benchmarks.protocol.load import LoadMaker, RoundLoad
from eval.benchmarks.protocol.types import CellRecord, Fields, Planned
from eval.benchmarks.ttft import require_room
from eval.errors import EvalError

Tell = Callable[[str], None]
GRACE_S = 60.0
"""For the engine to end what was cancelled, and to close."""
DENSE_GRACE_S = 400.0
"""Dense reading of 512K tokens is one step, and takes 163 s with 8B on an H200
(docs/benchmarks/ttft-h200.md)."""


@dataclass(frozen=True, slots=True)
class ProtocolPlan:
    """`shape` of the loads; a question attends to `evidence` tokens. A cell is cut after so many
    seconds: `full_limit_s` in the arm `full`, `limit_s` in the others, which have `other_rounds`
    rounds."""

    shape: LoadShape
    arms: tuple[Arm, ...]
    cells: tuple[str, ...]
    evidence: int
    limit_s: float
    full_limit_s: float
    other_rounds: int

    def rounds_of(self, arm: Arm) -> int:
        """Rounds of an arm."""
        return self.shape.rounds if arm.name == FULL else self.other_rounds

    def limit_of(self, arm: Arm) -> float:
        """Seconds of a cell of an arm."""
        return self.full_limit_s if arm.name == FULL else self.limit_s

    def cells_of(self, arm: Arm) -> tuple[str, ...]:
        """Cells that an arm is measured in."""
        return tuple(cell for cell in self.cells if cell in arm.cells)


@dataclass(slots=True)
class Measured:
    """What came out: cells of all arms; `engines` describes each arm's; `failures` says why an arm
    has no (more) cells."""

    cells: list[CellRecord] = field(default_factory=list)
    engines: dict[str, Fields] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def measure(
    choice: EngineChoice,
    plan: ProtocolPlan,
    tell: Tell = lambda _: None,
    keep: Callable[[Measured], None] = lambda _: None,
) -> Measured:
    """Every arm in an engine of its own. One that fails leaves what it has measured, and the others
    are measured all the same. `keep` is given what there is after every round."""
    measured = Measured()
    for arm in plan.arms:
        if not plan.cells_of(arm):
            continue
        try:
            _measure_arm(choice, plan, arm, measured, tell, keep)
        except Exception as error:
            # Out of memory, say: hours of other arms are not to be lost with it.
            measured.failures[arm.name] = f"{type(error).__name__}: {error}"
            tell(f"{arm.name} failed: {error}")
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return measured


def _measure_arm(
    choice: EngineChoice,
    plan: ProtocolPlan,
    arm: Arm,
    measured: Measured,
    tell: Tell,
    keep: Callable[[Measured], None],
) -> None:
    tell(f"{arm.name}: opening the engine")
    longest = plan.shape.lengths[-1]
    with _opened(choice, arm, longest) as engine:
        require_room(engine, plan.shape.lengths)
        measured.engines[arm.name] = fields = engine_fields(engine)
        attention = choose(engine, longest) if arm.dense else None
        fields["dense_attention"] = None if attention is None else asdict(attention)
        fields["first_come"] = engine.settings.first_come
        fields["guessed_tokens"] = engine.settings.guessed_tokens
        with nullcontext() if attention is None else attention.active():
            maker = LoadMaker(engine, plan.shape, arm, plan.evidence)
            _send(engine, plan, arm, "warm-up", 0, (maker.warm_up(),))
            for number in range(plan.rounds_of(arm)):
                load = maker.round(number)
                for cell in _round(engine, plan, arm, number, load, tell):
                    measured.cells.append(cell)
                fields["memory"] = memory_fields(engine)
                keep(measured)


def _round(
    engine: Engine, plan: ProtocolPlan, arm: Arm, number: int, load: RoundLoad, tell: Tell
) -> Iterator[CellRecord]:
    for cell, planned in _sent(plan, arm, load):
        tell(f"{arm.name}: round {number + 1} of {plan.rounds_of(arm)}, {cell}")
        record = _send(engine, plan, arm, cell, number, planned)
        tell(_said(record))
        if cell in CELLS:
            yield record
    for one in load.cold:
        engine.forget(one.given.key)


def _sent(
    plan: ProtocolPlan, arm: Arm, load: RoundLoad
) -> Iterator[tuple[str, tuple[Planned, ...]]]:
    """The loads of a round by name. What the mixed one asks about again is sent before, unmeasured,
    where there is no cold one."""
    cells = plan.cells_of(arm)
    loads: Mapping[str, tuple[Planned, ...]] = {"cold": load.cold, "mixed": load.mixed}
    if "cold" not in cells and load.before:
        yield "before", load.before
    for cell in cells:
        yield cell, loads[cell]


def _send(
    engine: Engine,
    plan: ProtocolPlan,
    arm: Arm,
    cell: str,
    number: int,
    planned: tuple[Planned, ...],
) -> CellRecord:
    return run_cell(
        engine,
        planned,
        arm=arm,
        cell=cell,
        round_number=number + 1,
        concurrency=plan.shape.concurrency,
        limit_s=plan.limit_of(arm),
        grace_s=DENSE_GRACE_S if arm.dense else GRACE_S,
    )


def _said(record: CellRecord) -> str:
    statuses = [one.status for one in record.records]
    counts = ", ".join(f"{statuses.count(one)} {one}" for one in dict.fromkeys(statuses))
    return f"  {counts} in {record.wall_s:.1f} s"


@contextmanager
def _opened(choice: EngineChoice, arm: Arm, longest: int) -> Iterator[Engine]:
    """The arm's engine. Raises EvalError when it does not close."""
    config = arm_config(arm, chosen_config(choice), choice, longest)
    start(config.device)
    engine = Engine.open(config, partial(chosen_parts, choice))
    try:
        yield engine
    finally:
        closing = threading.Thread(target=engine.close, daemon=True)
        closing.start()
        closing.join(GRACE_S)
        if closing.is_alive():
            raise EvalError("The engine does not close; the next one would have no memory")
