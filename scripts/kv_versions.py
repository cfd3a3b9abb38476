"""What a new version of a document costs: blocks that the old one does not have, after one clause
was edited and after one was put in, at many places. Prints one JSON object.

    python scripts/kv_versions.py TEXT... --places 50 --read 12000

Texts are tokenised by the model that the settings name. `--read` also reads that many tokens of
the first text both ways, with blocks cut before clauses and with fixed ones, and gives the
processor seconds of each.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from app.models import resolve
from app.prompt import document_sinks
from app.services import open_engine
from app.settings import load_settings
from backend.engine import Engine
from backend.loader import load_checkpoint
from backend.tokenizer import Tokenizer
from backend.types import DocumentTokens
from retrieval.blocks import cut_blocks

Range = tuple[int, int]
Cut = Callable[[str, Sequence[Range], int], tuple[Range, ...]]

PAGE_TOKENS = 64
CLAUSE = (
    "{0}.{1} Audit. The Supplier shall keep complete records of the Services for {2} years and "
    "shall let the Customer's auditors examine them on {3} days' notice.\n"
)
CLAUSE_ZH = "第{0}条之{1} 供方应当保存服务记录{2}年，并应在收到通知后{3}日内提供给需方查阅。\n"


def fixed_blocks(text: str, spans: Sequence[Range], most: int) -> tuple[Range, ...]:
    """Blocks of `most` tokens each."""
    return tuple((at, min(at + most, len(spans))) for at in range(0, len(spans), most))


CUTS: tuple[Cut, ...] = (cut_blocks, fixed_blocks)


def token_blocks(tokenizer: Tokenizer, text: str, most: int) -> dict[str, list[tuple[int, ...]]]:
    """The tokens of each block, by way of cutting."""
    ids, spans = tokenizer.encode_with_spans(text)
    return {
        cut.__name__: [tuple(ids[first:last]) for first, last in cut(text, spans, most)]
        for cut in CUTS
    }


def edited(text: str, source: random.Random) -> str:
    """One place in one line has other words."""
    at = source.choice([match.start() for match in re.finditer(r"(?<=\S)[ ，]", text)])
    words = (
        "，但另有约定的除外，" if text[at] == "，" else " except as agreed in writing on day 45 "
    )
    return text[:at] + words + text[at + source.randint(1, 12) :]


def inserted(text: str, source: random.Random) -> str:
    """One clause more, in the first tenth of the text."""
    lines = [match.end() for match in re.finditer("\n", text[: len(text) // 10])]
    at = source.choice(lines or [0])
    han = len(re.findall("[\u4e00-\u9fff]", text)) > len(text) / 4
    numbers = [source.randint(2, 60) for _ in range(4)]
    return text[:at] + (CLAUSE_ZH if han else CLAUSE).format(*numbers) + text[at:]


def versions(tokenizer: Tokenizer, text: str, most: int, places: int) -> dict[str, object]:
    """Sizes of blocks, and how many of them are new in versions of the text, by way of cutting."""
    blocks = token_blocks(tokenizer, text, most)
    new: dict[tuple[str, str], list[int]] = {}
    source = random.Random(7)
    for change in (edited, inserted):
        for _ in range(places):
            for cut, found in token_blocks(tokenizer, change(text, source), most).items():
                fresh = len(set(found) - set(blocks[cut]))
                new.setdefault((cut, change.__name__), []).append(fresh)
    return {cut: _figures(blocks[cut]) | _counted(new, cut) for cut in blocks}


def _figures(blocks: list[tuple[int, ...]]) -> dict[str, object]:
    sizes = [len(block) for block in blocks]
    return {
        "tokens": sum(sizes),
        "blocks": len(blocks),
        "mean_tokens": round(statistics.mean(sizes), 1),
        "least_tokens": min(sizes),
        "pages": sum(-(-size // PAGE_TOKENS) for size in sizes),
    }


def _counted(new: dict[tuple[str, str], list[int]], cut: str) -> dict[str, object]:
    """How often how many blocks were new."""
    return {
        change: dict(sorted(Counter(counts).items()))
        for (by, change), counts in new.items()
        if by == cut
    }


def reading_seconds(engine: Engine, text: str, cut: Cut, tokens: int, owner: str) -> float:
    """Processor seconds of all threads for reading the first `tokens` tokens; `owner` has none of
    them yet."""
    ids, spans = engine.tokenizer.encode_with_spans(text)
    ids, spans = ids[:tokens], spans[:tokens]
    blocks = cut(text[: spans[-1][1]], spans, engine.block_tokens)
    sinks = document_sinks(engine.tokenizer)
    document = DocumentTokens(owner, tuple(ids), blocks, sinks=sinks, owner=owner)
    began = time.process_time()
    engine.read(document).wait(3600)
    return time.process_time() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--places", type=int, default=50)
    parser.add_argument("--most", type=int, default=512, help="tokens of a block")
    parser.add_argument("--read", type=int, default=0, help="tokens to read; 0: none")
    args = parser.parse_args()
    settings = load_settings()
    tokenizer = load_checkpoint(resolve(settings)).tokenizer
    record: dict[str, object] = {}
    for path in args.texts:
        text = path.read_text(encoding="utf-8")
        record[path.name] = versions(tokenizer, text, args.most, args.places)
    if args.read:
        text = args.texts[0].read_text(encoding="utf-8")
        with closing(open_engine(settings)) as engine:
            reading_seconds(engine, text[:4000], fixed_blocks, 600, "first")
            record["reading_seconds"] = {
                cut.__name__: [
                    round(
                        reading_seconds(engine, text, cut, args.read, f"{cut.__name__} {turn}"), 2
                    )
                    for turn in range(2)
                ]
                for cut in CUTS
            }
    sys.stdout.write(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
