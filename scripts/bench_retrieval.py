"""Retrieval quality on question sets: chunk recall, quoted sentence, refusal.

    python -m scripts.bench_retrieval --data DIR [--out FILE.jsonl] [--every N] [--sets cuad,...]
        [--folds FOLDS] [--plain-wording]

DIR holds the JSONL sets (one document a line, see docs/benchmarks/retrieval.md). A chunk is a hit
when it holds at least half of a gold span; the first quoted sentence is right when it and a gold
span overlap by at least half of the shorter one. `plain` is the baseline: rank-bm25 over
white-space words (Chinese: characters) of 500-character chunks. With --out one line per question
holds the features that `scripts.fit_support` fits the refusal on. A set may also be `crossed`
(see there) or the path of a file in the same form. `cited`: answered, and one of the quotes that
the product shows overlaps a gold span. With --folds each document is asked with the learned cues
that did not see it (see `scripts.fit_cues`). With --plain-wording each question of CUAD is asked in
one of the plain wordings of its matter, in turn, and left out where there is none.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rank_bm25 import BM25Okapi

from eval.metrics.retrieval import overlaps, rank_of
from eval.types import Span
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.cues import CueModel, read_cues
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.showing import shown
from retrieval.support import features
from retrieval.types import Document, DocumentPage
from scripts.fit_cues import fold_of
from scripts.fit_judges import quotes

SETS = {
    "contractnli": "en_contracts/contractnli.jsonl",
    "cuad": "en_contracts/cuad.jsonl",
    "maud": "en_contracts/maud_long.jsonl",
    "cail": "zh_qa/cail2019_rc.jsonl",
    "statutes": "zh_qa/statute_qa.jsonl",
}

ENGLISH = ("contractnli", "cuad", "maud")
_PLAIN_ASKS = Path(__file__).with_name("plain_asks.toml")


def gold_spans(question: dict[str, Any]) -> list[Span]:
    """Gold spans of a question; empty for answers that are no span."""
    pairs = zip(question["answer_starts"], question["answers"], strict=True)
    return [(start, start + len(answer)) for start, answer in pairs if start >= 0 and answer]


class Plain:
    """The baseline: white-space words (characters in Chinese) of fixed 500-character chunks."""

    def __init__(self, text: str, chinese: bool) -> None:
        self._chinese = chinese
        self._spans = [(at, min(at + 500, len(text))) for at in range(0, len(text), 500)]
        self._bm25 = BM25Okapi([self._words(text[a:b]) or [""] for a, b in self._spans])

    def _words(self, text: str) -> list[str]:
        return [c for c in text if not c.isspace()] if self._chinese else text.lower().split()

    def search(self, question: str) -> list[Span]:
        scores = self._bm25.get_scores(self._words(question))
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [self._spans[i] for i in order[:10]]


def results(
    documents: Iterator[dict[str, Any]],
    every: int,
    with_plain: bool,
    folds: Sequence[CueModel] = (),
) -> Iterator[dict[str, Any]]:
    """One record per question of every N-th document."""
    for number, data in enumerate(documents):
        if number % every:
            continue
        text = data["text"]
        if not data["qas"]:
            continue
        clauses = outline(text)
        page = DocumentPage(1, 0, len(text))
        document = Document(text, (page,), data["title"], "text/plain", data["lang"])
        started = time.perf_counter()
        cues = folds[fold_of(data["doc_id"])] if folds else None
        index = SearchIndex.build(text, split(document, clauses), clauses, cues)
        built = time.perf_counter() - started
        plain = Plain(text, data["lang"] == "zh") if with_plain else None
        for question in data["qas"]:
            asked = question["question"]
            golds = gold_spans(question)
            started = time.perf_counter()
            evidence = find_evidence(index, asked)
            spent = time.perf_counter() - started
            spans = [(hit.chunk.start, hit.chunk.end) for hit in evidence.hits]
            first = [(s.start, s.end) for s in evidence.sentences[:3]]
            quoted = shown(evidence.sentences) if evidence.answerable else ()
            query = read_question(asked)
            yield {
                "doc": data["doc_id"], "qid": question["qid"], "question": asked,
                "dataset": question.get("dataset", ""), "category": question.get("category", ""),
                "impossible": question["is_impossible"], "golds": golds,
                "rank": rank_of(spans, golds), "quoted": [quotes(span, golds) for span in first],
                "shown": len(quoted),
                "cited": any(overlaps((one.start, one.end), golds) for one in quoted),
                "plain": rank_of(plain.search(asked), golds) if plain else 0,
                "support": evidence.support, "answerable": evidence.answerable,
                "reason": evidence.reason, "build_s": built, "ask_s": spent, "chars": len(text),
                "features": features(index, query, evidence.hits, evidence.sentences)
                if evidence.hits and evidence.sentences else {},
                "quote": text[slice(*first[0])] if first else "",
            }  # fmt: skip


def crossed(data: Path, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Documents with questions of another kind of document, which they cannot answer: merger
    questions on 12 non-disclosure agreements, statute questions on Chinese contract forms."""
    rng = random.Random(seed)

    def questions(name: str) -> list[str]:
        lines = (data / SETS[name]).open(encoding="utf-8")
        asked = [q for line in lines for q in json.loads(line)["qas"]]
        return [q["question"] for q in asked if q.get("dataset") != "LawBench 1-1"]

    def document(name: str, text: str, lang: str, asked: list[str]) -> dict[str, Any]:
        qas = [
            {
                "qid": f"x{i}",
                "question": q,
                "answers": [],
                "answer_starts": [],
                "is_impossible": True,
            }
            for i, q in enumerate(asked)
        ]
        return {"doc_id": name, "title": name, "lang": lang, "text": text, "qas": qas}

    merger, statute = questions("maud"), questions("statutes")
    ndas = (data / SETS["contractnli"]).open(encoding="utf-8")
    for line in itertools.islice(ndas, 12):
        nda = json.loads(line)
        yield document(nda["doc_id"], nda["text"], "en", rng.sample(merger, 4))
    for path in sorted((data / "zh_contracts").glob("*.txt"))[::4]:
        text = path.read_text(encoding="utf-8")
        yield document(path.stem, text, "zh", rng.sample(statute, 30))


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The documents of a JSONL set."""
    for line in path.open(encoding="utf-8"):
        yield json.loads(line)


def plainly(documents: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The documents with their questions in the plain wordings of `plain_asks.toml`."""
    wordings = tomllib.loads(_PLAIN_ASKS.read_text(encoding="utf-8"))
    for number, data in enumerate(documents):
        asked = []
        for question in data["qas"]:
            known = wordings.get(question.get("category", ""))
            if known:
                asked.append({**question, "question": known[number // 3 % len(known)]})
        yield {**data, "qas": asked}


def table(rows: list[dict[str, Any]]) -> dict[str, float | int]:
    """Figures of one set."""
    spans = [row for row in rows if row["golds"]]
    answerable = [row for row in rows if not row["impossible"]]
    impossible = [row for row in rows if row["impossible"]]

    def share(found: list[bool]) -> float:
        return round(sum(found) / len(found), 3) if found else float("nan")

    def mean(found: list[int]) -> float:
        return round(sum(found) / len(found), 2) if found else float("nan")

    return {
        "questions": len(rows),
        "spans": len(spans),
        "recall@1": share([row["rank"] == 1 for row in spans]),
        "recall@5": share([0 < row["rank"] <= 5 for row in spans]),
        "plain@1": share([row["plain"] == 1 for row in spans]),
        "plain@5": share([0 < row["plain"] <= 5 for row in spans]),
        "quote@1": share([any(row["quoted"][:1]) for row in spans]),
        "quote@3": share([any(row["quoted"]) for row in spans]),
        "cited": share([row["cited"] for row in spans]),
        "quotes": mean([row["shown"] for row in rows if row["shown"]]),
        "refused": share([not row["answerable"] for row in impossible]),
        "false_refusals": share([not row["answerable"] for row in answerable]),
        "ask_ms": round(1000 * sum(row["ask_s"] for row in rows) / max(1, len(rows)), 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--no-plain", action="store_true")
    parser.add_argument("--folds", type=Path)
    parser.add_argument("--plain-wording", action="store_true")
    args = parser.parse_args()
    paths = sorted(args.folds.glob("*.json")) if args.folds else []
    folds = [read_cues(path) for path in paths]
    figures: dict[str, dict[str, float | int]] = {}
    mix: list[dict[str, Any]] = []
    written = args.out.open("w", encoding="utf-8") if args.out else None
    for name in args.sets.split(","):
        rows = []
        if name == "crossed":
            documents = crossed(args.data)
        else:
            documents = lines_of(args.data / SETS[name] if name in SETS else Path(name))
        if args.plain_wording:
            documents = plainly(documents)
        for row in results(documents, args.every, not args.no_plain, folds):
            rows.append(row)
            if written:
                record = {"set": Path(name).stem, **row}
                written.write(json.dumps(record, ensure_ascii=False) + "\n")
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            groups[f"{name} {row['dataset']}".strip()].append(row)
        figures.update({group: table(found) for group, found in groups.items()})
        for group in groups:
            sys.stderr.write(f"{group} {json.dumps(figures[group])}\n")
        if name in ENGLISH:
            mix += rows
    if mix:
        figures["English mix"] = table(mix)
        sys.stderr.write(f"English mix {json.dumps(figures['English mix'])}\n")
    if written:
        written.close()
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
