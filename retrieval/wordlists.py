"""The word lists of `wordlists.toml`, read once."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Literal

_FILE = Path(__file__).with_name("wordlists.toml")


@lru_cache(maxsize=8)
def word_list(
    name: Literal[
        "english_stop",
        "asking_english",
        "asking_chinese",
        "light_english",
        "abbreviations",
        "linking_english",
        "uncounted_english",
        "sums_english",
        "periods_english",
        "no_name_english",
    ],  # fmt: skip
) -> frozenset[str]:
    """The words of one list."""
    return frozenset(tomllib.loads(_FILE.read_text(encoding="utf-8"))[name].split())
