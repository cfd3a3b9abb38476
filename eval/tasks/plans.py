"""What each task plants and asks, in the wording of contracts.

- `single`: one fact. Kamradt, "Needle In A Haystack: Pressure Testing LLMs" (2023).
- `multi-key`, `multi-value`: the fact among others of the same kind with other keys; several values
  for one key, all wanted. Hsieh et al., "RULER: What's the Real Context Size of Your Long-Context
  Language Models?" (2024), tasks niah_multikey and niah_multivalue.
- `variable-tracking`: chains of deposits that equal one another; RULER's task vt.
- `aggregation`: which goods were delivered most often, and how often; RULER's common and frequent
  words (cwe, fwe).

Each plan also asks a question that nothing planted answers (its twin): the key was never planted.
In `multi-key` it differs from a planted one by its number alone. Knows no text and no tokens.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from eval.tasks.types import Asked, Needle, Place, Plan, TaskName
from eval.tasks.wording import Invention

KEYS = 4
"""Facts of the same kind in `multi-key`, the wanted one included, as in RULER's niah_multikey_1."""
VALUES = 4
"""Values of the one key in `multi-value`, as in RULER."""
HOPS = 4
"""Deposits that follow from the first in a chain of `variable-tracking`, as in RULER; there are two
chains."""
MOST, LESS = (8, 7, 6), (2, 2, 2, 1, 1)
"""Deliveries of each of the goods in `aggregation`: of the wanted ones and of the others."""


def make_plan(task: TaskName, invention: Invention, depth: float) -> Plan:
    """What to plant for a task; `depth` is that of the wanted fact, where there is one."""
    return _PLANS[task](invention, depth)


def _single(invention: Invention, depth: float) -> Plan:
    return _facts(invention, depth, keys=1)


def _multi_key(invention: Invention, depth: float) -> Plan:
    return _facts(invention, depth, keys=KEYS)


def _facts(invention: Invention, depth: float, keys: int) -> Plan:
    rng = invention.rng
    fact = rng.choice(invention.words["facts"])
    name = invention.name()
    # The second key shares its name with the wanted one, so that the number has to be read.
    wanted, *others = [invention.key(name if n < 2 else None) for n in range(keys)]
    value = invention.value(fact["value"])
    needles = [Needle(fact["clause"].format(key=wanted, value=value), depth)]
    for key in others:
        other = fact["clause"].format(key=key, value=invention.value(fact["value"]))
        needles.append(Needle(other, rng.random()))
    unknown = invention.key(name if others else None)
    return Plan(
        tuple(needles),
        (
            Asked(fact["question"].format(key=wanted), value, (_place(needles, 0, value),)),
            Asked(fact["question"].format(key=unknown)),
        ),
    )


def _multi_value(invention: Invention, depth: float) -> Plan:
    words = invention.words["instalments"]
    key = invention.key()
    values = [invention.value("amount") for _ in range(VALUES)]
    needles = _spread([words["clause"].format(key=key, value=v) for v in values], invention.rng)
    places = tuple(_place(needles, number, value) for number, value in enumerate(values))
    question = words["question"]
    return Plan(
        tuple(needles),
        (
            Asked(question.format(key=key), invention.words["joiner"].join(values), places),
            Asked(question.format(key=invention.key())),
        ),
    )


def _variable_tracking(invention: Invention, depth: float) -> Plan:
    words = invention.words["deposits"]
    sentences: list[tuple[float, str]] = []
    chains = []
    for _ in range(2):
        names = [words["name"].format(name=invention.name()) for _ in range(HOPS + 1)]
        value = invention.value("amount")
        chain = [words["fixed"].format(name=names[0], value=value)]
        for other, name in zip(names, names[1:], strict=False):
            chain.append(words["equal"].format(name=name, other=other))
        # As in RULER a chain stands in its order, mixed with the other one.
        depths = sorted(invention.rng.random() for _ in chain)
        sentences += zip(depths, chain, strict=True)
        chains.append((names, value, chain))
    needles = [Needle(sentence, depth) for depth, sentence in sentences]
    names, value, chain = chains[0]
    places = tuple(_place(needles, number, name) for number, name in enumerate(names))
    ask = words["amount"]
    steps = tuple(Place(number, (0, len(text))) for number, text in enumerate(chain))
    unknown = words["name"].format(name=invention.name())
    return Plan(
        tuple(needles),
        (
            Asked(words["list"].format(value=value), invention.words["joiner"].join(names), places),
            Asked(ask.format(name=names[-1]), value, steps),
            Asked(ask.format(name=unknown)),
        ),
    )


def _aggregation(invention: Invention, depth: float) -> Plan:
    words, rng = invention.words["deliveries"], invention.rng
    counts = (*MOST, *LESS)
    nouns = rng.sample(invention.words["items"], len(counts) + 1)
    *items, unknown = [words["item"].format(key=invention.key(), noun=noun) for noun in nouns]
    delivered = [item for item, count in zip(items, counts, strict=True) for _ in range(count)]
    rng.shuffle(delivered)
    notes = [
        words["note"].format(
            item=item, place=rng.choice(invention.words["places"]), date=invention.date()
        )
        for item in delivered
    ]
    needles = _spread(notes, rng)
    most = items[: len(MOST)]
    places = {
        wanted: tuple(
            _place(needles, number, item) for number, item in enumerate(delivered) if item == wanted
        )
        for wanted in most
    }
    counted = most[1]
    return Plan(
        tuple(needles),
        (
            Asked(
                words["most"].format(count=len(most)),
                invention.words["joiner"].join(most),
                tuple(place for wanted in most for place in places[wanted]),
            ),
            Asked(words["count"].format(item=counted), str(MOST[1]), places[counted]),
            Asked(words["when"].format(item=unknown)),
        ),
    )


def _spread(sentences: list[str], rng: random.Random) -> list[Needle]:
    """The sentences one in each of as many equal parts of the document, in this order."""
    return [
        Needle(sentence, (number + rng.random()) / len(sentences))
        for number, sentence in enumerate(sentences)
    ]


def _place(needles: list[Needle], number: int, words: str) -> Place:
    start = needles[number].text.index(words)
    return Place(number, (start, start + len(words)))


_PLANS: Mapping[TaskName, Callable[[Invention, float], Plan]] = {
    "single": _single,
    "multi-key": _multi_key,
    "multi-value": _multi_value,
    "variable-tracking": _variable_tracking,
    "aggregation": _aggregation,
}
