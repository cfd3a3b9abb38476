"""What a question should attend to: negative log-likelihood of gold answers by reading mode.

For each question its gold evidence is known; with it come four windows drawn at random from the
same document, as a retriever's other finds would. The modes differ in how that material reaches the
model: as text in the prompt, or as KV pages of blocks read on their own, evidence last.

    python -m eval.reading_modes MODEL DATA.jsonl --blocks 512 1024 2048 4096 --device cuda
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.prompt import document_sinks, plan_prompt
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.layers.linear import Precision
from backend.types import DocumentTokens

WINDOWS, WINDOW_TOKENS, MARGIN = 4, 256, 64
LONGEST_DOCUMENT = 32_000
PER_DOCUMENT = 4
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """One question with its evidence and random windows, as token ranges of its document."""

    document: str
    question: str
    answer: str
    evidence: Span
    windows: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A document's text, tokens and their places."""

    text: str
    ids: tuple[int, ...]
    spans: tuple[Span, ...]

    def cut(self, span: Span) -> str:
        """The text of a token range."""
        return self.text[self.spans[span[0]][0] : self.spans[span[1] - 1][1]]


def cases(data: Path, engine: Engine, seed: int) -> tuple[dict[str, Text], list[Case]]:
    """Up to four questions of each document under 32,000 tokens with answers of 20 to 400
    characters."""
    texts: dict[str, Text] = {}
    found: list[Case] = []
    random_source = random.Random(seed)
    for line in map(json.loads, data.read_text(encoding="utf-8").splitlines()):
        usable = [
            (qa["question"], answer, start)
            for qa in line["qas"]
            for answer, start in zip(qa["answers"], qa["answer_starts"], strict=True)
            if start >= 0 and 20 <= len(answer) <= 400
        ]
        ids, spans = engine.tokenizer.encode_with_spans(line["text"])
        if not usable or len(ids) > LONGEST_DOCUMENT:
            continue
        texts[line["doc_id"]] = Text(line["text"], tuple(ids), tuple(spans))
        for question, answer, start in random_source.sample(usable, min(PER_DOCUMENT, len(usable))):
            first = next(i for i, span in enumerate(spans) if span[1] > start)
            ends = (i for i, span in enumerate(spans) if span[0] >= start + len(answer))
            evidence = (max(0, first - MARGIN), min(len(ids), next(ends, len(ids)) + MARGIN))
            starts = [
                random_source.randrange(max(1, len(ids) - WINDOW_TOKENS)) for _ in range(WINDOWS)
            ]
            windows = tuple((s, min(s + WINDOW_TOKENS, len(ids))) for s in starts)
            found.append(Case(line["doc_id"], question, answer, evidence, windows))
    return texts, found


def losses(engine: Engine, texts: dict[str, Text], found: list[Case], mode: str) -> Iterator[float]:
    """Nats per token of each gold answer. Modes: text, evidence text, pages, pages and text."""
    for case in found:
        text = texts[case.document]
        best = text.cut(case.evidence)
        passages: list[str] = []
        if mode == "text":
            passages = [*map(text.cut, case.windows), best]
        elif mode in ("evidence text", "pages and text"):
            passages = [best]
        document = DocumentTokens(
            case.document, text.ids, engine.split_blocks(len(text.ids)), sinks=()
        )
        pages = (*case.windows, case.evidence) if mode.startswith("pages") else ()
        plan = plan_prompt(
            engine.tokenizer, case.question, "en", passages, document=document, evidence=pages
        )
        if pages:
            sinks = document_sinks(engine.tokenizer)
            engine.read(
                DocumentTokens(document.key, text.ids, document.blocks, sinks=sinks), lazy=True
            )
            prompt = plan.prompt_ids[len(sinks) :]
        else:
            prompt = plan.prompt_ids
        scores = engine.score(
            prompt,
            engine.tokenizer.encode(case.answer),
            document_key=document.key if pages else None,
            evidence=pages,
        )
        yield -statistics.mean(scores)


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m eval.reading_modes", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--blocks", type=int, nargs="+", default=[512])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--limit", type=int, default=0, help="questions; 0 takes all")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    precision: Precision = args.precision
    rows: dict[str, list[float]] = {}
    for block in args.blocks:
        config = EngineConfig(
            args.model, device=args.device, precision=precision, block_tokens=block,
            kv_budget=4 << 30,
        )  # fmt: skip
        engine = Engine.open(config)
        try:
            texts, found = cases(args.data, engine, args.seed)
            found = found[: args.limit or None]
            for mode in ("text", "evidence text", "pages", "pages and text"):
                name = f"{mode} {block}" if mode.startswith("pages") else mode
                if name not in rows:
                    rows[name] = list(losses(engine, texts, found, mode))
                    sys.stderr.write(f"{name}: {statistics.mean(rows[name]):.4f}\n")
        finally:
            engine.close()
    sys.stdout.write(json.dumps(_summary(rows), indent=1) + "\n")


def _summary(rows: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Means, and the paired difference to the text mode with its standard error."""
    summary = {}
    for name, values in rows.items():
        differences = [a - b for a, b in zip(values, rows["text"], strict=True)]
        error = statistics.stdev(differences) / len(differences) ** 0.5
        summary[name] = {
            "questions": len(values),
            "nats_per_token": round(statistics.mean(values), 4),
            "to_text": round(statistics.mean(differences), 4),
            "standard_error": round(error, 4),
        }
    return summary


if __name__ == "__main__":
    main()
