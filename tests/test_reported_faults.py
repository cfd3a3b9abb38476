"""docs/reported-faults.md names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_test_that_is_named_is_there() -> None:
    text = (ROOT / "docs" / "reported-faults.md").read_text("utf-8")
    named = NAMED.findall(text)
    assert len(named) > 20 and text.count("::") == len(named)
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or f"\ndef {name}(" not in (ROOT / path).read_text("utf-8")
    ]
    assert missing == []
