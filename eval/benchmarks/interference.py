"""Short questions while a long document is being read, against the same questions alone.

Questions come by chance (Poisson arrivals at a given rate), whether earlier ones are answered or
not, on short documents that are read already. The same load is measured alone, beside the reading
of a long document, and beside it again in an engine that serves strictly in order of arrival. Times
are the engine's own: arrival to the end of the first decoding step.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from backend.engine import Engine
from backend.types import SamplingParams
from eval.benchmarks.engine_documents import (
    UniqueDocument,
    make_document,
    require_unique,
    whole_blocks,
)
from eval.errors import EvalError

Fields = dict[str, object]
SETTLE_S = 0.3
"""Between two measurements."""


@dataclass(frozen=True, slots=True)
class InterferencePlan:
    """`rate`: questions a second; `questions`: of the load alone (beside a reading they come until
    it is done); `answer_tokens` each; `short` and `long` in tokens."""

    short: int = 2048
    long: int = 65536
    rate: float = 0.25
    questions: int = 20
    answer_tokens: int = 16
    short_documents: int = 4
    rounds: int = 3
    evidence: int = 1536
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """First-token times in milliseconds, in order of arrival; `read_s`: how long the long document
    was read meanwhile, 0 without one."""

    ttft_ms: tuple[float, ...]
    read_s: float = 0.0

    def fields(self) -> Fields:
        """Percentiles for the record."""
        return {
            "questions": len(self.ttft_ms),
            "ttft_p50_ms": _percentile(self.ttft_ms, 50),
            "ttft_p95_ms": _percentile(self.ttft_ms, 95),
            "read_s": self.read_s,
        }


class Bench:
    """One engine with its short documents read, and fresh long ones."""

    def __init__(
        self, engine: Engine, plan: InterferencePlan, pieces: Sequence[str], first_seed: int
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._rng = random.Random(first_seed)
        short = whole_blocks(plan.short, engine.block_tokens)
        long = whole_blocks(plan.long, engine.block_tokens)
        sizes = [short] * plan.short_documents + [long] * (2 * plan.rounds)
        made = [
            make_document(
                engine,
                f"interference-{first_seed}-{number}",
                size,
                seed=first_seed + number,
                pieces=pieces,
                evidence_tokens=plan.evidence,
                evidence_ranges=4,
            )
            for number, size in enumerate(sizes)
        ]
        require_unique(made)
        self._short, self._long = made[: plan.short_documents], made[plan.short_documents :]
        for document in self._short:
            self._engine.read(document.as_read(engine)).wait()
        self._ask(self._short[0], "warm-up", [])

    def alone(self) -> Load:
        """The questions without anything beside them."""
        time.sleep(SETTLE_S)
        return Load(tuple(self._questions(lambda sent: sent >= self._plan.questions)))

    def read_alone(self) -> Load:
        """A long document without any question."""
        return Load((), self._read(self._long.pop(), lambda done: done.wait()))

    def together(self) -> Load:
        """The questions for as long as a long document is read."""
        found: list[float] = []

        def ask(done: threading.Event) -> None:
            found.extend(self._questions(lambda _: done.is_set()))

        read_s = self._read(self._long.pop(), ask)
        if not found:
            raise EvalError("No question came while the document was read; raise the rate.")
        return Load(tuple(found), read_s)

    def _read(self, document: UniqueDocument, beside: Callable[[threading.Event], object]) -> float:
        """Seconds from the start of reading to its end; `beside` runs meanwhile."""
        time.sleep(SETTLE_S)
        done = threading.Event()
        took: list[float] = []
        started = time.perf_counter()
        ticket = self._engine.read(document.as_read(self._engine))

        def wait() -> None:
            state = ticket.wait()
            took.append(time.perf_counter() - started)
            if state.status != "done":
                raise EvalError(f"The document was not read: {state.error or state.status}")
            done.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        beside(done)
        waiting.join()
        self._engine.forget(document.name)
        return took[0]

    def _questions(self, over: Callable[[int], bool]) -> list[float]:
        """Sends questions until `over(number sent)`; waits for all and gives their times."""
        found: list[float] = []
        threads: list[threading.Thread] = []
        while not over(len(threads)):
            document = self._rng.choice(self._short)
            thread = threading.Thread(
                target=self._ask, args=(document, f"q{self._rng.random()}", found)
            )
            thread.start()
            threads.append(thread)
            time.sleep(self._rng.expovariate(self._plan.rate))
        for thread in threads:
            thread.join()
        return found

    def _ask(self, document: UniqueDocument, name: str, found: list[float]) -> None:
        request = replace(
            document.question(self._engine),
            request_id=name,
            sampling=SamplingParams(max_tokens=self._plan.answer_tokens, ignore_eos=True),
        )
        for event in self._engine.generate(request):
            if event.timings is not None:
                found.append(event.timings.ttft_ms)


def summary(rounds: Sequence[dict[str, Fields]], blocks: int) -> Fields:
    """Medians over the rounds of the ratios that count. Each ratio is of one round."""

    def middle(values: Sequence[float]) -> float:
        return _percentile(values, 50)

    def each(value: Callable[[dict[str, Fields]], float]) -> float:
        return middle([value(one) for one in rounds])

    def p95(one: dict[str, Fields], name: str) -> float:
        return float(str(one[name]["ttft_p95_ms"]))

    def read_s(one: dict[str, Fields], name: str) -> float:
        return float(str(one[name]["read_s"]))

    return {
        "alone_p95_ms": each(lambda one: p95(one, "alone")),
        "beside_p95_ms": each(lambda one: p95(one, "beside")),
        "block_ms": each(lambda one: 1000 * read_s(one, "read_alone") / blocks),
        "allowed_p95_ms": each(
            lambda one: 2 * p95(one, "alone") + 1000 * read_s(one, "read_alone") / blocks
        ),
        "first_come_p95_ms": each(lambda one: p95(one, "first_come")),
        "first_come_over_beside": each(lambda one: p95(one, "first_come") / p95(one, "beside")),
        "reading_slowed": each(lambda one: read_s(one, "beside") / read_s(one, "read_alone") - 1),
    }


def _percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else 0.0
