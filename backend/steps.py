"""Runs one step of the engine: blocks to read, a piece of a prompt, or a token of each answer.

A failure ends what the step was for, never the engine. Knows no queues. Owned by the engine's
thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from backend.batch import Batch, Decode, Prefill, ReadBlocks
from backend.block_reader import BlockReader
from backend.errors import BackendError
from backend.failures import describe_failure, is_shortage
from backend.reading import DocumentReading
from backend.runner import AnyContext, Runner
from backend.sequence import Sequence
from backend.step_watch import StepLeft
from kvstore.errors import PoolExhausted

_log = logging.getLogger(__name__)


class Steps:
    """`read_tokens`: document tokens that went through the model so far."""

    def __init__(
        self,
        blocks: BlockReader,
        runner: Runner,
        make_way: Callable[[Sequence], bool],
        holding: Callable[[], bool],
    ) -> None:
        """`make_way` gives a request room that others hold; False when they hold none. `holding`
        tells whether pages are held for requests that wait."""
        self._make_way = make_way
        self._holding = holding
        self._blocks = blocks
        self._runner = runner
        self.read_tokens = 0

    def run(self, batch: Batch) -> None:
        """One step, accounted for. What goes wrong is told to those whom it was for. Raises
        StepLeft."""
        try:
            if isinstance(batch, ReadBlocks):
                self.read(batch.reading, batch.indexes, batch.asker)
            elif isinstance(batch, Prefill):
                self._prefill(batch)
            else:
                self._decode(batch)
        except StepLeft:
            raise
        except Exception as error:
            if isinstance(error, PoolExhausted) and self._comes_again(batch):
                return
            _log.exception("a step of the engine failed: %s", _named(batch))
            _fail(batch, describe_failure(error), alone=is_shortage(error))

    def read(
        self, reading: DocumentReading, indexes: tuple[int, ...], asker: Sequence | None = None
    ) -> None:
        """Have the KV of these blocks, or of the first of them, in the pool. Raises
        PoolExhausted."""
        computed = self._blocks.read(reading, indexes)
        self.read_tokens += computed
        if asker is not None:
            asker.read_tokens += computed

    def _comes_again(self, batch: Batch) -> bool:
        """Whether blocks that had no room are asked for again: those of a request once others let
        go what they hold, those of a document once they are answered."""
        if not isinstance(batch, ReadBlocks):
            return False
        return self._holding() if batch.asker is None else self._make_way(batch.asker)

    def _prefill(self, batch: Prefill) -> None:
        sequence = batch.sequence
        if sequence.context is None:
            raise BackendError("a request without a context was scheduled")
        first = sequence.filled
        ids = sequence.request.prompt_ids[first : first + batch.tokens]
        if len(ids) < sequence.prompt_left:
            self._runner.extend([sequence.context], [ids])
            sequence.filled += len(ids)
            return
        draws = [sequence.draw()]
        scored = self._runner.step([sequence.context], [ids], last_only=True, draws=draws)[0]
        sequence.filled += len(ids)
        sequence.accept(scored.logits[0], scored.best[0], scored.drawn)

    def _decode(self, batch: Decode) -> None:
        contexts = [s.context for s in batch.sequences if s.context is not None]
        if len(contexts) == 1 and (guess := batch.sequences[0].guess()):
            self._decode_guessing(batch.sequences[0], contexts[0], guess)
            return
        draws = [sequence.draw() for sequence in batch.sequences]
        rows = self._runner.step(contexts, [[s.tokens[-1]] for s in batch.sequences], draws=draws)
        for sequence, scored in zip(batch.sequences, rows, strict=True):
            try:
                sequence.accept(scored.logits[0], scored.best[0], scored.drawn)
            except Exception as error:
                # Logits that are no numbers end their own request, not those beside it.
                if not isinstance(error, BackendError):
                    _log.exception("no token for %s", sequence.request.request_id)
                sequence.fail(describe_failure(error))

    def _decode_guessing(self, sequence: Sequence, context: AnyContext, guess: list[int]) -> None:
        """The next token and, as far as the guess holds, those after it, in one step."""
        scored = self._runner.step([context], [[sequence.tokens[-1], *guess]])[0]
        used = 0
        for row, best in zip(scored.logits, scored.best, strict=True):
            used += 1
            sequence.accept(row, best)
            held = used <= len(guess) and not sequence.finished
            if not held or sequence.tokens[-1] != guess[used - 1]:
                break
        context.take_back(len(guess) + 1 - used)


def _fail(batch: Batch, message: str, *, alone: bool) -> None:
    """End what the step was for; with `alone` only the largest of the answers. The others have
    their token in the next step: one that fails leaves no context longer."""
    if isinstance(batch, ReadBlocks):
        if batch.asker is not None:
            batch.asker.fail(message)
        else:
            batch.reading.error = message
            batch.reading.notify()
    elif isinstance(batch, Prefill):
        batch.sequence.fail(message)
    elif alone:
        max(batch.sequences, key=_size).fail(message)
    else:
        for sequence in batch.sequences:
            sequence.fail(message)


def _named(batch: Batch) -> str:
    """What a step was for, by the ids of its requests."""
    if isinstance(batch, ReadBlocks):
        asker = "" if batch.asker is None else f" for {batch.asker.request.request_id}"
        return f"reading document {batch.reading.document.key}{asker}"
    if isinstance(batch, Prefill):
        return f"the prompt of {batch.sequence.request.request_id}"
    return f"decoding {', '.join(one.request.request_id for one in batch.sequences)}"


def _size(sequence: Sequence) -> tuple[int, int]:
    """Tokens of the context; of two of one size the later is the larger."""
    return (0 if sequence.context is None else sequence.context.length, sequence.arrival)
