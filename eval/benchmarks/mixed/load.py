"""Makes loads: which documents arrive, how long they are, what is asked about them.

A cold load consists of documents of its own. A mixed load has the same lengths, but a share of its
documents was in the cold load of the same round, and new questions are asked about those. Lengths
go round the given ones evenly, so that all loads of a run have the same mix. Knows no server.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval.benchmarks.documents import salt_of, unique_document
from eval.benchmarks.mixed.traffic import poisson_times
from eval.benchmarks.mixed.types import Kind, LoadRequest, PlantedQuestion
from eval.errors import EvalError

FACTS = (
    ("handling fee", "EUR"),
    ("storage charge", "GBP"),
    ("inspection fee", "USD"),
    ("insurance premium", "CHF"),
    ("cleaning charge", "NOK"),
    ("weighing fee", "SEK"),
)
"""Planted in every document, so that questions have an answer there and nowhere else: three for its
first visit, three for a second."""

_SALT = re.compile(r"\[([a-z]+)\.")


@dataclass(frozen=True, slots=True)
class LoadShape:
    """`lengths` in tokens, ascending; the last one is the long one. `long_share` of the `requests`
    have it; if there is only one length, all are short. `rate` is requests per second; None lets
    `concurrency` requests run at a time. `hit_share`: see the module."""

    requests: int
    lengths: tuple[int, ...]
    long_share: float
    concurrency: int
    rounds: int
    hit_share: float
    output_tokens: int
    rate: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Texts:
    """What documents are made of: see `eval.benchmarks.documents`."""

    pieces: tuple[str, ...]
    count: Callable[[str], int]


def require_sensible(shape: LoadShape) -> None:
    """Raises EvalError for a shape that can't be sent."""
    if not shape.lengths or min(shape.requests, shape.concurrency, shape.rounds) < 1:
        raise EvalError("A load needs a length and at least one request, round and place.")
    if not 0 <= shape.long_share <= 1 or not 0 <= shape.hit_share <= 1:
        raise EvalError("--long-share and --hit-share are shares between 0 and 1.")
    if shape.rate is not None and shape.rate <= 0:
        raise EvalError("--rate is a number of requests per second, above 0.")


def cold_load(shape: LoadShape, texts: Texts, round_number: int) -> tuple[LoadRequest, ...]:
    """Documents that stand in no other load of this or another round and seed."""
    return tuple(
        _new(shape, texts, "cold", round_number, place, tokens)
        for place, tokens in enumerate(load_lengths(shape, "cold", round_number))
    )


def mixed_load(
    shape: LoadShape, texts: Texts, round_number: int, cold: Sequence[LoadRequest]
) -> tuple[LoadRequest, ...]:
    """As many requests as the cold load; `hit_share` of them on documents of it."""
    lengths = load_lengths(shape, "mixed", round_number)
    hits = asked_again(shape, round_number, [request.tokens for request in cold], lengths)
    times = _times(shape, "mixed", round_number)
    requests = []
    for place, tokens in enumerate(lengths):
        if place in hits:
            before = cold[hits[place]]
            again = dataclasses.replace(
                before,
                request_id=f"mixed-{round_number}-{place}",
                cell="mixed",
                questions=_questions(before.document, second=True),
                at_ms=times[place],
            )
            requests.append(again)
        else:
            requests.append(_new(shape, texts, "mixed", round_number, place, tokens))
    return tuple(requests)


def needed_before(
    mixed: Sequence[LoadRequest], cold: Sequence[LoadRequest]
) -> tuple[LoadRequest, ...]:
    """The requests of the cold load whose documents the mixed load asks again."""
    documents = {request.document for request in mixed}
    return tuple(request for request in cold if request.document in documents)


def load_lengths(shape: LoadShape, cell: str, round_number: int) -> list[int]:
    """One length a request, in an order of the seed."""
    *shorter, longest = shape.lengths
    long = round(shape.long_share * shape.requests) if shorter else shape.requests
    lengths = [longest] * long
    lengths += [shorter[place % len(shorter)] for place in range(shape.requests - long)]
    random.Random(f"lengths {shape.seed} {cell} {round_number}").shuffle(lengths)
    return lengths


def asked_again(
    shape: LoadShape, round_number: int, cold: Sequence[int], mixed: Sequence[int]
) -> dict[int, int]:
    """Which places of the mixed load, whose lengths are `mixed`, ask about documents of the cold
    one again, and in which places those stand there: `hit_share` of all, chosen by the seed."""
    chosen = random.Random(f"hits {shape.seed} {round_number}")
    hits = set(chosen.sample(range(len(mixed)), round(shape.hit_share * len(mixed))))
    left = chosen.sample(range(len(cold)), len(cold))
    found = {}
    for place in sorted(hits):
        # Both loads have the same lengths, so that there is one left of each.
        found[place] = next(one for one in left if cold[one] == mixed[place])
        left.remove(found[place])
    return found


def kind_of(tokens: int, shape: LoadShape) -> Kind:
    """Whether a document of so many tokens counts as long."""
    return "long" if tokens == shape.lengths[-1] and len(shape.lengths) > 1 else "short"


def _new(
    shape: LoadShape, texts: Texts, cell: str, round_number: int, place: int, tokens: int
) -> LoadRequest:
    name = f"{cell}-{round_number}-{place}"
    number = random.Random(f"{shape.seed} {name}").getrandbits(62)
    document = _planted(tokens, number, texts)
    return LoadRequest(
        request_id=name,
        cell=cell,
        document=document,
        questions=_questions(document, second=False),
        tokens=tokens,
        kind=kind_of(tokens, shape),
        output_tokens=shape.output_tokens,
        at_ms=_times(shape, cell, round_number)[place],
    )


def _times(shape: LoadShape, cell: str, round_number: int) -> Sequence[float | None]:
    if shape.rate is None:
        return (None,) * shape.requests
    seed = random.Random(f"times {shape.seed} {cell} {round_number}").getrandbits(62)
    return poisson_times(shape.requests, shape.rate, seed)


def _planted(tokens: int, number: int, texts: Texts) -> str:
    """A document of at most `tokens` tokens, and not many less, with the facts spread in it."""
    salt = salt_of(number)
    facts = [
        f"[{salt}.{name}] The {name} for lot {_lot(salt)} is {currency} {amount}.\n"
        for (name, currency), amount in zip(FACTS, _amounts(salt), strict=True)
    ]
    room = tokens - sum(texts.count(fact) for fact in facts)
    if room < tokens // 4:
        raise EvalError(
            f"A document of {tokens} tokens has no room for {len(FACTS)} facts; give at least "
            f"{2 * (tokens - room)}."
        )
    text = unique_document(room, seed=number, count=texts.count, pieces=texts.pieces)
    lines = text.splitlines(keepends=True)
    excess = texts.count(text) - room
    while excess > 0:
        excess -= texts.count(lines.pop())
    for place in reversed(range(len(facts))):
        lines.insert(round(len(lines) * (place + 1) / (len(facts) + 1)), facts[place])
    return "".join(lines)


def _questions(document: str, *, second: bool) -> tuple[PlantedQuestion, ...]:
    """Three questions on the facts of a document; others for its second visit."""
    opening = _SALT.match(document)
    if opening is None:
        raise EvalError("A document of a load has to begin with its salt.")
    asked = list(zip(FACTS, _amounts(opening[1]), strict=True))
    half = len(FACTS) // 2
    return tuple(
        PlantedQuestion(f"What is the {name} for lot {_lot(opening[1])}?", amount)
        for (name, _), amount in (asked[half:] if second else asked[:half])
    )


def _amounts(salt: str) -> list[str]:
    """Different amounts, made from the document's salt."""
    chosen = random.Random(f"amounts {salt}")
    whole = chosen.sample(range(1000, 10000), len(FACTS))
    return [f"{number:,}.{chosen.choice(('25', '50', '75'))}" for number in whole]


def _lot(salt: str) -> str:
    """How the text calls what the fees are for."""
    return f"{salt[:4].upper()}-{salt[4:].upper()}"
