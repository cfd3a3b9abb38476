"""Documents of random tokens for an engine, and their questions: no text is tokenised.

A block begins with its number among all blocks of the run, written in tokens, so that no two hold
the same ones. Answers mean nothing; an engine's speed does not depend on what is written.
"""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from backend.engine import Engine
from backend.types import Request, SamplingParams
from eval.benchmarks.engine_documents import Span, UniqueDocument, scattered
from eval.errors import EvalError

_NUMBER_TOKENS = 4
_MOST_BLOCKS = 1 << 16
"""Of one document: 33 million tokens in blocks of 512."""
_EVIDENCE_RANGES = 4
QUESTIONS = 3


def plain_tokens(engine: Engine) -> NDArray[np.int32]:
    """The ids of the vocabulary that stand for text, without control tokens."""
    size = min(engine.tokenizer.vocab_size, engine.config.vocab_size)
    known = np.array([bool(engine.tokenizer.token_bytes(one)) for one in range(size)])
    return np.flatnonzero(known).astype(np.int32)


def draw_document(
    engine: Engine,
    vocabulary: NDArray[np.int32],
    name: str,
    tokens: int,
    *,
    number: int,
    seed: int,
    one_block: bool = False,
) -> UniqueDocument:
    """The document of this number, from 0; within a run every document has another. `one_block`: it
    is read as one block.

    Raises EvalError for numbers that the vocabulary is too small to write.
    """
    blocks = engine.split_blocks(tokens)
    base, first = len(vocabulary), number * _MOST_BLOCKS
    if first + len(blocks) > base**_NUMBER_TOKENS or len(blocks) > _MOST_BLOCKS:
        raise EvalError(
            f"{name} has a block whose number can't be written in {_NUMBER_TOKENS} tokens of this "
            "vocabulary: ask for fewer rounds or requests"
        )
    chosen = np.random.default_rng((seed, number)).integers(0, base, tokens, dtype=np.int32)
    starts = np.array([start for start, _ in blocks])
    numbers = first + np.arange(len(blocks))
    for place in range(_NUMBER_TOKENS):
        at = starts + place
        written = (numbers // base**place % base).astype(np.int32)
        inside = at < tokens
        chosen[at[inside]] = written[inside]
    ids = array("i", vocabulary[chosen].tobytes())
    spans = ((0, tokens),) if one_block else blocks
    return UniqueDocument(name, number, ids, spans, ((0, tokens),), ((0, tokens),))


def make_questions(
    engine: Engine,
    document: UniqueDocument,
    *,
    seed: int,
    evidence: int,
    answer_tokens: int,
    visit: str,
) -> tuple[Request, Request, Request]:
    """Three questions on `evidence` tokens each, in places of chance; on all of a document that is
    one block. Others for every `visit`."""
    source = random.Random(f"{seed} {document.name} {visit}")

    def places() -> tuple[Span, ...]:
        if len(document.blocks) == 1:
            return ((0, document.tokens),)
        return scattered(source, document.tokens, evidence, _EVIDENCE_RANGES)

    # The words of a question come from the seed of its document, the same for all three: the
    # engine keeps no KV of a prompt but for the sinks.
    worded = replace(document, seed=source.getrandbits(62)).question(engine)

    def ask(place: int) -> Request:
        return replace(
            worded,
            request_id=f"{document.name} {visit} {place}",
            sampling=SamplingParams(max_tokens=answer_tokens, ignore_eos=True),
            evidence=places(),
        )

    return ask(0), ask(1), ask(2)
