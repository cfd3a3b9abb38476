"""Unique documents as the engine takes them, proven to share no block before any is measured."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.prompt import document_sinks, plan_prompt
from backend.engine import Engine
from backend.types import DocumentTokens, Request, SamplingParams
from eval.benchmarks.documents import STRETCH, salt_of, unique_document
from eval.errors import EvalError

Span = tuple[int, int]

_FIRST_TOKEN = SamplingParams(max_tokens=1, ignore_eos=True)


@dataclass(frozen=True, slots=True)
class UniqueDocument:
    """`ids` are its tokens and `blocks` the half-open ranges in which it is read. `evidence` are
    the token ranges that its first question attends to, `other_evidence` those of its second."""

    name: str
    seed: int
    ids: array[int]
    blocks: tuple[Span, ...]
    evidence: tuple[Span, ...]
    other_evidence: tuple[Span, ...]

    @property
    def tokens(self) -> int:
        """Tokens of the document."""
        return len(self.ids)

    def as_read(self, engine: Engine) -> DocumentTokens:
        """The document for `Engine.read`."""
        return DocumentTokens(
            self.name, tuple(self.ids), self.blocks, sinks=document_sinks(engine.tokenizer)
        )

    def question(self, engine: Engine, *, second: bool = False) -> Request:
        """A question on the pages of its evidence; its answer is one token long."""
        document = DocumentTokens(self.name, (), (), sinks=document_sinks(engine.tokenizer))
        number = 2 if second else 1
        plan = plan_prompt(
            engine.tokenizer,
            f"Which sentence has the number {salt_of(self.seed)}.{number}?",
            "en",
            (),
            document=document,
            evidence=self.other_evidence if second else self.evidence,
        )
        return Request(
            f"{self.name}-{number}",
            plan.prompt_ids,
            _FIRST_TOKEN,
            self.name,
            plan.evidence,
            plan.sink_len,
        )


def make_document(
    engine: Engine,
    name: str,
    tokens: int,
    *,
    seed: int,
    pieces: Sequence[str],
    evidence_tokens: int,
    evidence_ranges: int,
    one_block: bool = False,
) -> UniqueDocument:
    """A document of exactly `tokens` tokens. `one_block`: it is read as one block, densely, and
    its questions attend to all of it.

    Raises EvalError when a block of it lacks the document's salt.
    """
    tokenizer = engine.tokenizer
    text = unique_document(
        tokens, seed=seed, count=lambda part: len(tokenizer.encode(part)), pieces=pieces
    )
    ids, spans = tokenizer.encode_with_spans(text)
    blocks = ((0, tokens),) if one_block else engine.split_blocks(tokens)
    salt = salt_of(seed)
    for first, last in blocks:
        if salt not in text[spans[first][0] : spans[last - 1][1]]:
            raise EvalError(
                f"Tokens {first:,} to {last:,} of {name} have no salt: read in longer blocks"
            )
    source = random.Random(seed)

    def choose() -> tuple[Span, ...]:
        if one_block:
            return ((0, tokens),)
        return scattered(source, tokens, evidence_tokens, evidence_ranges)

    return UniqueDocument(name, seed, array("i", ids[:tokens]), blocks, choose(), choose())


def whole_blocks(tokens: int, block_tokens: int) -> int:
    """The length rounded down to whole blocks, so that no tail is too short for a salt; a length
    under one block stays."""
    return max(tokens // block_tokens * block_tokens, min(tokens, block_tokens))


def stretch_for(block_tokens: int) -> int:
    """How far apart salts may be in documents that are read in such blocks."""
    return min(STRETCH, block_tokens)


def scattered(source: random.Random, tokens: int, wanted: int, ranges: int) -> tuple[Span, ...]:
    """`ranges` disjoint stretches of a document, `wanted` tokens together (or all of a shorter
    document), in an order of chance."""
    if wanted >= tokens:
        return ((0, tokens),)
    ranges = min(ranges, wanted)
    sizes = [wanted // ranges + (place < wanted % ranges) for place in range(ranges)]
    # What lies between the stretches, in `ranges` + 1 gaps of chance.
    cuts = sorted(source.randint(0, tokens - wanted) for _ in range(ranges))
    spans: list[Span] = []
    taken = 0
    for cut, size in zip(cuts, sizes, strict=True):
        spans.append((cut + taken, cut + taken + size))
        taken += size
    source.shuffle(spans)
    return tuple(spans)


def blocks_touched(blocks: Sequence[Span], ranges: Iterable[Span]) -> list[list[int]]:
    """For each range, the indexes of the blocks that hold tokens of it."""
    return [
        [index for index, (first, last) in enumerate(blocks) if first < end and start < last]
        for start, end in ranges
    ]


def require_unique(documents: Iterable[UniqueDocument]) -> None:
    """Raises EvalError when two blocks, of any documents, hold the same tokens."""
    seen: dict[bytes, str] = {}
    for document in documents:
        for index, (first, last) in enumerate(document.blocks):
            place = f"block {index} of {document.name}"
            digest = hashlib.sha256(document.ids[first:last].tobytes()).digest()
            if (other := seen.setdefault(digest, place)) != place:
                raise EvalError(
                    f"{place} holds the tokens of {other}: what is read second would be found in "
                    "the cache. Give longer texts, or another seed."
                )
