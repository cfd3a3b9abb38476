"""The two loads of a round, ready to be given to an engine.

Lengths, and which documents the mixed load asks about again, are those of `bench mixed`. All arms
get the same documents and questions; in a dense one a document is one block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from backend.engine import Engine
from eval.benchmarks.engine_documents import require_unique, whole_blocks
from eval.benchmarks.mixed.load import LoadShape, asked_again, kind_of, load_lengths
from eval.benchmarks.protocol.arms import Arm
from eval.benchmarks.protocol.documents import draw_document, make_questions, plain_tokens
from eval.benchmarks.protocol.types import Planned


@dataclass(frozen=True, slots=True)
class RoundLoad:
    """`before`: the requests of the cold load whose documents the engine keeps, since the mixed
    load asks about them again."""

    cold: tuple[Planned, ...]
    mixed: tuple[Planned, ...]

    @property
    def before(self) -> tuple[Planned, ...]:
        """See the class."""
        return tuple(one for one in self.cold if one.kept)


class LoadMaker:
    """Makes an arm's loads for its engine. A question attends to `evidence` tokens."""

    def __init__(self, engine: Engine, shape: LoadShape, arm: Arm, evidence: int) -> None:
        self._engine = engine
        self._shape = shape
        self._arm = arm
        self._evidence = evidence
        self._vocabulary = plain_tokens(engine)

    def round(self, number: int) -> RoundLoad:
        """The loads of round `number`, from 0. Raises EvalError when two documents share a
        block."""
        shape = self._shape
        lengths = load_lengths(shape, "cold", number)
        lengths_after = load_lengths(shape, "mixed", number)
        again = asked_again(shape, number, lengths, lengths_after)
        # The warm-up has document 0.
        first = 1 + number * 2 * shape.requests
        cold = [
            replace(
                self._plan("cold", f"cold-{number}-{place}", tokens, first + place),
                kept=self._arm.reuse and place in again.values(),
            )
            for place, tokens in enumerate(lengths)
        ]
        mixed = []
        for place, tokens in enumerate(lengths_after):
            name = f"mixed-{number}-{place}"
            if place in again:
                mixed.append(self._plan_again("mixed", name, cold[again[place]]))
            else:
                after = first + shape.requests + place
                mixed.append(self._plan("mixed", name, tokens, after))
        new = [one.document for one in mixed if not one.again]
        require_unique([*(one.document for one in cold), *new])
        return RoundLoad(tuple(cold), tuple(mixed))

    def warm_up(self) -> Planned:
        """A short request that is not measured."""
        tokens = min(4 * self._engine.block_tokens, self._shape.lengths[-1])
        return self._plan("warm-up", "warm-up", tokens, 0)

    def _plan(self, cell: str, name: str, tokens: int, number: int) -> Planned:
        """A request on a document of its own."""
        document = draw_document(
            self._engine,
            self._vocabulary,
            name,
            whole_blocks(tokens, self._engine.block_tokens),
            number=number,
            seed=self._shape.seed,
            one_block=self._arm.dense,
        )
        return Planned(
            name=name,
            kind=kind_of(tokens, self._shape),
            document=document,
            given=document.as_read(self._engine),
            questions=make_questions(
                self._engine,
                document,
                seed=self._shape.seed,
                evidence=self._evidence,
                answer_tokens=self._shape.output_tokens,
                visit=cell,
            ),
        )

    def _plan_again(self, cell: str, name: str, before: Planned) -> Planned:
        """A request on the document of an earlier one, with other questions."""
        questions = make_questions(
            self._engine,
            before.document,
            seed=self._shape.seed,
            evidence=self._evidence,
            answer_tokens=self._shape.output_tokens,
            visit=cell,
        )
        return replace(before, name=name, questions=questions, again=True, kept=False)
