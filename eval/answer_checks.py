"""How many seeded lies the answer checks mark, and how many true sentences they mark wrongly.

Takes sentences with figures, dates, negations or clause numbers from evaluation files (JSONL with a
`text` per line, or TXT), changes one thing in each (see `corruptions`), and checks the changed
sentence against the original as the cited span.

    python -m eval.answer_checks DATA... --sentences 300 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from app.answer.checks import check_text
from eval.corruptions import lies
from retrieval.sentences import split

_HOLDS = re.compile(
    r"\d|[一二三四五六七八九十百千万]+[个日天年月元]|百分之|\bnot\b|不得|Section|第.{1,4}条"
)


def sentences(paths: Iterable[Path]) -> Iterator[str]:
    """Sentences of 40 to 500 characters (15 to 200 in Chinese) that hold something to change."""
    for path in paths:
        for text in _texts(path):
            for start, end in split(text, 0, len(text)):
                sentence = text[start:end].strip()
                shortest, longest = (40, 500) if sentence.isascii() else (15, 200)
                if shortest <= len(sentence) <= longest and _HOLDS.search(sentence):
                    yield sentence


def _texts(path: Path) -> Iterator[str]:
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        yield from (json.loads(line)["text"] for line in content.splitlines())
    else:
        yield content


def measure(chosen: Iterable[str], seed: int, show: int = 0) -> dict[str, dict[str, int]]:
    """Counts by kind of lie: `made` and `marked`; under "true", sentences and those marked."""
    counts = {"true": {"made": 0, "marked": 0}}
    for sentence in chosen:
        counts["true"]["made"] += 1
        wrong = [check for check in check_text(sentence, [sentence]) if not check.ok]
        counts["true"]["marked"] += bool(wrong)
        if wrong and show > 0:
            show -= 1
            sys.stderr.write(f"true but marked: {sentence}\n  {wrong[0]}\n")
        for lie in lies(sentence, seed):
            entry = counts.setdefault(lie.kind, {"made": 0, "marked": 0})
            entry["made"] += 1
            caught = any(not check.ok for check in check_text(lie.text, [sentence]))
            entry["marked"] += caught
            if not caught and show > 0:
                show -= 1
                sys.stderr.write(f"{lie.kind} missed: {lie.text}\n     truth: {sentence}\n")
    return counts


def main() -> None:
    """Prints one JSON object of counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="print so many misses")
    arguments = parser.parse_args()
    found = sorted(set(sentences(arguments.data)))
    chosen = random.Random(arguments.seed).sample(found, min(arguments.sentences, len(found)))
    counts = measure(chosen, arguments.seed, arguments.show)
    sys.stdout.write(
        json.dumps({"seed": arguments.seed, "found": len(found), "counts": counts}) + "\n"
    )


if __name__ == "__main__":
    main()
