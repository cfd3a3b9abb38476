"""Answer shapes side by side: what leads, what the model adds, what it costs.

For each shape the same questions are asked of the same documents; counted are citations that
overlap a gold span, answers and refusals, and figures of the model's words that stand in none of
the cited spans (by a plain search for digits, not by the checks).

    python -m eval.answer_shapes DATA.jsonl... --questions 20 --shapes quote,text --model PATH
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.ask import ask
from app.documents import LoadedDocument
from app.events import AnswerCompleted, AnswerDelta
from app.types import Answer, AskOptions
from backend.engine import Engine
from backend.engine_config import EngineConfig
from eval.runs.opened import open_document
from retrieval.language import detect
from retrieval.parse import parse_file
from retrieval.types import Document, DocumentPage

SHAPES: Mapping[str, AskOptions] = {
    "quote": AskOptions(phrase=False),
    "one quote": AskOptions(phrase=False, quotes=1),
    "quote, P(question|sentence)": AskOptions(phrase=False, rerank=True),
    "one quote, P(question|sentence)": AskOptions(phrase=False, quotes=1, rerank=True),
    "quote + phrasing from text": AskOptions(pages=False),
    "quote + phrasing from the chunk's text": AskOptions(pages=False, reinject="chunk"),
    "quote + phrasing from pages": AskOptions(reinject="nothing"),
    "quote + phrasing from pages and text": AskOptions(),
    "quote + phrasing, asked again": AskOptions(regenerate=True),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question on one document with its gold spans (none: not answerable)."""

    document: LoadedDocument
    question: str
    gold: tuple[tuple[int, int], ...]


def questions(paths: Sequence[Path], per_file: int, seed: int, engine: Engine) -> Iterator[Asked]:
    """`per_file` questions of each file, drawn evenly over its documents; yes/no and choice
    questions have no span and are left out."""
    for path in paths:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        drawn = [(line, qa) for line in lines for qa in line["qas"] if _usable(qa)]
        chosen = random.Random(seed).sample(drawn, min(per_file, len(drawn)))
        made: dict[str, LoadedDocument] = {}
        for line, qa in chosen:
            name = line["doc_id"]
            if name not in made:
                made[name] = _load(line, path.parent, engine)
            text = made[name].text
            gold = [
                _gold(text, answer, start)
                for answer, start in zip(qa["answers"], qa["answer_starts"], strict=True)
            ]
            if None in gold:
                sys.stderr.write(f"left out, its answer is no span of the text: {qa['qid']}\n")
                continue
            yield Asked(made[name], qa["question"], tuple(span for span in gold if span))


def _gold(text: str, answer: str, start: int) -> tuple[int, int] | None:
    """The gold span; looked for, up to white space, where a parser has moved it. None where it is
    no span of the parsed text (a row of a table, say)."""
    if text[start : start + len(answer)] == answer:
        return start, start + len(answer)
    pattern = r"\s*".join(re.escape(c) for c in re.sub(r"\s", "", answer))
    found = re.search(pattern, text)
    return None if found is None else found.span()


def _usable(qa: dict[str, Any]) -> bool:
    return qa["is_impossible"] or all(start >= 0 for start in qa["answer_starts"])


def _load(line: dict[str, Any], folder: Path, engine: Engine) -> LoadedDocument:
    if "text" not in line:
        document = parse_file(folder / line["file"], line["file"])
    else:
        text = line["text"]
        page = DocumentPage(1, 0, len(text))
        document = Document(text, (page,), line["title"], "text/plain", detect(text))
    return open_document(line["doc_id"], document, engine)


@dataclass(slots=True)
class Tally:
    """Counts of one shape."""

    cited: int = 0
    first_cited: int = 0
    answerable: int = 0
    refused: int = 0
    false_refused: int = 0
    unanswerable: int = 0
    used: int = 0
    dropped: int = 0
    wrong_figures: int = 0
    marked: int = 0

    def add(self, asked: Asked, answer: Answer) -> None:
        """Count one answer."""
        hits = [
            any(c.start_char < end and start < c.end_char for start, end in asked.gold)
            for c in answer.citations
        ]
        refused = answer.status == "not_found"
        if asked.gold:
            self.answerable += 1
            self.cited += any(hits)
            self.first_cited += hits[:1] == [True]
            self.false_refused += refused
        else:
            self.unanswerable += 1
            self.refused += refused
        self.used += answer.phrasing in ("used", "cut")
        self.dropped += answer.phrasing == "dropped"
        self.marked += sum(not check.ok for check in answer.checks)


def run(asked: Sequence[Asked], options: AskOptions, engine: Engine, show: bool) -> dict[str, Any]:
    """Ask every question in one shape."""
    tally = Tally()
    first: list[float] = []
    total: list[float] = []
    for number, item in enumerate(asked):
        started = time.perf_counter()
        words, answer = "", None
        for event in ask(
            engine, [item.document], item.question, request_id=f"shape-{number}", options=options
        ):
            if isinstance(event, AnswerDelta):
                if len(first) == number:
                    first.append(time.perf_counter() - started)
                words += event.text if event.kind == "phrasing" else ""
            if isinstance(event, AnswerCompleted):
                answer = event.answer
        total.append(time.perf_counter() - started)
        if answer is None:
            raise RuntimeError(f"no answer to {item.question!r}")
        tally.add(item, answer)
        spans = " ".join(citation.quote for citation in answer.citations)
        wrong = set(re.findall(r"\d+", words)) - set(re.findall(r"\d+", spans))
        tally.wrong_figures += len(wrong)
        if show and words:
            sys.stderr.write(f"Q {item.question}\nA {answer.answer}\n\n")
    counts = {name: getattr(tally, name) for name in Tally.__slots__}
    return counts | {
        "median_first_word_ms": round(1000 * statistics.median(first)),
        "median_total_ms": round(1000 * statistics.median(total)),
    }


def main() -> None:
    """Prints one JSON object a shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=20, help="questions of each file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--shapes", default=",".join(SHAPES), help="names, divided by commas without a space"
    )
    parser.add_argument("--closeness", type=float, default=AskOptions().closeness)
    parser.add_argument("--show", action="store_true", help="print answers with phrasing")
    arguments = parser.parse_args()
    with closing(Engine.open(EngineConfig(model=arguments.model))) as engine:
        asked = list(questions(arguments.data, arguments.questions, arguments.seed, engine))
        for name in re.split(r",(?! )", arguments.shapes):
            options = replace(SHAPES[name], closeness=arguments.closeness)
            result = run(asked, options, engine, arguments.show)
            sys.stdout.write(json.dumps({"shape": name} | result) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
