"""Pairs of real sentences: those of the sample contracts, each against itself, its neighbour and
shortened forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.parse import parse_file
from retrieval.sentences import split
from retrieval.types import Language

SAMPLES = Path(__file__).parents[3] / "samples"
PAIRS = 200


@pytest.fixture(scope="session")
def pairs() -> dict[Language, list[tuple[str, str]]]:
    """200 (gold, prediction) pairs a language."""
    return {
        "en": _pairs("supply-agreement.en.docx"),
        "zh": _pairs("equipment-contract.zh.docx"),
    }


def _pairs(name: str) -> list[tuple[str, str]]:
    text = parse_file(SAMPLES / name, name).text
    sentences = [text[a:b] for a, b in split(text) if b - a >= 12][: PAIRS + 1]
    found = []
    for number, gold in enumerate(sentences[:PAIRS]):
        half = len(gold) // 2
        shapes = (
            sentences[number + 1],
            gold[half:],
            gold[:half],
            gold,
            f"{gold} {sentences[number + 1]}",
        )
        found.append((gold, shapes[number % len(shapes)]))
    assert len(found) == PAIRS
    return found
