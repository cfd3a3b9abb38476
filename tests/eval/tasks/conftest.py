"""Real sample contracts and a small tokenizer for the task generator."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.loader import load_checkpoint
from backend.tokenizer import Tokenizer
from eval.tasks.haystack import Text
from eval.tasks.texts import read_texts

SAMPLES = Path(__file__).parents[3] / "samples"
FILES = (SAMPLES / "supply-agreement.en.docx", SAMPLES / "equipment-contract.zh.docx")


@pytest.fixture(scope="session")
def tokenizer(tiny_llama: Path) -> Tokenizer:
    return load_checkpoint(tiny_llama).tokenizer


@pytest.fixture(scope="session")
def contracts(tokenizer: Tokenizer) -> list[Text]:
    """One English and one Chinese contract."""
    return read_texts(FILES, tokenizer)
