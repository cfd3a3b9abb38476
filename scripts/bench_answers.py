"""What the steps around the quotes do to real questions, and questions in the other language.

    python -m scripts.bench_answers --data DIR [--sets cuad,cail] [--limit N] [--off NAME,...]
    python -m scripts.bench_answers --data DIR --cross [--documents N]

Asks `app.ask` without a model, all steps off and then on, and prints for each set the citation hit
(a quote that answers overlaps the gold by half of the shorter one), false refusals, refusals of
unanswerable questions, quotes an answer by role, answers whose quotes changed, and milliseconds.
With --cross fifteen CUAD questions are asked in English and in Chinese of the same contracts, with
--fresh twelve others.
DIR is laid out as for `scripts.bench_retrieval`. The documents count as read: no tokens are made.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.ask import ask
from app.documents import LoadedDocument
from app.events import AnswerCompleted
from app.types import Answer, AskOptions
from eval.runs.opened import index_document
from retrieval.types import Document, DocumentPage
from scripts.bench_retrieval import SETS, gold_spans, lines_of
from scripts.fit_judges import quotes

STEPS = ("lists", "references", "definitions", "amendments", "compute", "backtrack")
# The category's question of CUAD in Chinese; translated for this script.
CHINESE = {
    "Agreement Date": "合同是哪一天签订的？",
    "Expiration Date": "合同的初始期限什么时候届满？",
    "Renewal Term": "初始期限届满后，续展的期限是多久？",
    "Governing Law": "合同适用哪个国家或者哪个州的法律？",
    "Non-Compete": "合同是否限制一方与对方竞争（竞业限制）？",
    "Exclusivity": "合同中有没有独家、排他的约定？",
    "Termination for Convenience": "一方可以无需理由、提前通知就终止合同吗？",
    "Change of Control": "一方控制权变更时，另一方可以终止合同吗？",
    "Anti-Assignment": "转让本合同是否需要取得对方同意？",
    "License Grant": "合同是否授予许可（知识产权使用权）？",
    "Audit Rights": "一方是否有权审计、查阅对方的账簿和记录？",
    "Cap on Liability": "合同是否约定了责任上限（赔偿责任限额）？",
    "Liquidated Damages": "合同是否约定了违约金？",
    "Warranty Duration": "质量保证期（保修期）是多久？",
    "Insurance": "合同是否要求投保（保险）？",
}

# Written after everything was fixed on those above, and measured once.
FRESH = {
    "Document Name": "这份合同叫什么名称？",
    "Parties": "合同的双方当事人是谁？",
    "Effective Date": "合同从哪天起生效？",
    "Notice Period to Terminate Renewal": "不想续约的，要提前多久通知对方？",
    "Most Favored Nation": "合同里有没有最惠待遇条款（给第三方更优惠的条件时也要给对方）？",
    "No-Solicit of Employees": "合同是否禁止招揽、雇用对方的员工？",
    "Non-Disparagement": "合同是否要求一方不得诋毁对方？",
    "Revenue/Profit Sharing": "双方之间有没有收入分成、利润分成？",
    "Minimum Commitment": "有没有最低采购量或者最低订货数量？",
    "IP Ownership Assignment": "一方开发的知识产权是否归另一方所有（转让）？",
    "Post-Termination Services": "合同终止后，一方还要继续承担什么义务？",
    "Third Party Beneficiary": "合同以外的第三方能不能作为受益人主张合同权利？",
}


class _NoEngine:
    """Nothing is phrased, so only the progress of reading is asked for."""

    def progress(self, key: str) -> None:
        return None


def loaded(data: dict[str, Any]) -> LoadedDocument:
    """A document of a set, indexed."""
    page = DocumentPage(1, 0, len(data["text"]))
    document = Document(data["text"], (page,), data["title"], "text/plain", data["lang"])
    return index_document(data["doc_id"], document)


def answered(document: LoadedDocument, question: str, options: AskOptions) -> Answer:
    """The product's answer without a model."""
    for event in ask(
        _NoEngine(),  # type: ignore[arg-type]
        [document],
        question,
        request_id="bench",
        options=options,
    ):
        if isinstance(event, AnswerCompleted):
            return event.answer
    raise RuntimeError("The answer ended before it was complete.")


def hits(answer: Answer, question: dict[str, Any]) -> bool:
    """Whether a quote that answers lies on a gold span."""
    golds = gold_spans(question)
    return any(
        quotes((one.start_char, one.end_char), golds)
        for one in answer.citations
        if one.role == "answer"
    )


def sample(path: Path, limit: int, seed: int) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Documents with `limit` answerable questions that have a span and half as many unanswerable
    ones, spread over the set."""
    documents = list(lines_of(path))
    rng = random.Random(seed)
    asked = [
        (place, question)
        for place, data in enumerate(documents)
        for question in data["qas"]
        if question["is_impossible"] or gold_spans(question)
    ]
    rng.shuffle(asked)
    good = [one for one in asked if not one[1]["is_impossible"]][:limit]
    bad = [one for one in asked if one[1]["is_impossible"]][: limit // 2]
    for place, data in enumerate(documents):
        mine = [question for where, question in (*good, *bad) if where == place]
        if mine:
            yield data, mine


def figures(rows: Sequence[tuple[Answer, dict[str, Any], float]]) -> dict[str, object]:
    """The line of one table."""
    good = [(answer, q) for answer, q, _ in rows if not q["is_impossible"]]
    bad = [answer for answer, q, _ in rows if q["is_impossible"]]
    roles = Counter(one.role for answer, _ in good for one in answer.citations)
    replied = max(1, sum(answer.status != "not_found" for answer, _ in good))
    return {
        "answerable": len(good),
        "citation_hit": round(sum(hits(a, q) for a, q in good) / max(1, len(good)), 3),
        "false_refusals": round(
            sum(a.status == "not_found" for a, _ in good) / max(1, len(good)), 3
        ),
        "unanswerable": len(bad),
        "refused": round(sum(a.status == "not_found" for a in bad) / max(1, len(bad)), 3),
        "quotes": {role: round(count / replied, 2) for role, count in sorted(roles.items())},
        "replaced": sum(one.replaced for answer, _ in good for one in answer.citations),
        "computed": sum(c.kind == "computed" for a, _, _ in rows for c in a.checks),
        "ms": round(sum(took for *_, took in rows) / max(1, len(rows)), 1),
    }


def asked_with(
    documents: Sequence[tuple[LoadedDocument, list[Any]]], options: AskOptions
) -> list[tuple[Answer, dict[str, Any], float]]:
    """Every question with its answer and the milliseconds that it took."""
    rows = []
    for document, questions in documents:
        for question in questions:
            started = time.perf_counter()
            answer = answered(document, question["question"], options)
            rows.append((answer, question, 1000 * (time.perf_counter() - started)))
    return rows


def steps(args: argparse.Namespace) -> dict[str, object]:
    """All steps off, then those on that are not named in --off."""
    table: dict[str, object] = {}
    without: dict[str, Any] = dict.fromkeys(STEPS, False)
    chosen: dict[str, Any] = {name: name not in args.off for name in STEPS}
    off = AskOptions(phrase=False, **without)
    on = dataclasses.replace(off, **chosen)
    for name in args.sets.split(","):
        material = [
            (loaded(data), asked)
            for data, asked in sample(args.data / SETS[name], args.limit, args.seed)
        ]
        before, after = asked_with(material, off), asked_with(material, on)
        changed = sum(
            [c.quote for c in a.citations if c.role == "answer"]
            != [c.quote for c in b.citations if c.role == "answer"]
            for (a, _, _), (b, _, _) in zip(before, after, strict=True)
        )
        table[name] = {"off": figures(before), "on": figures(after), "answers_changed": changed}
        sys.stderr.write(f"{name} {json.dumps(table[name], ensure_ascii=False)}\n")
    return table


def cross(args: argparse.Namespace) -> dict[str, object]:
    """The same questions in both languages, of the same contracts."""
    rows: dict[str, list[tuple[Answer, dict[str, Any], float]]] = {"en": [], "zh": []}
    chinese = FRESH if args.fresh else CHINESE
    options = AskOptions(phrase=False)
    for number, data in enumerate(lines_of(args.data / SETS["cuad"])):
        if number >= args.documents:
            break
        document = loaded(data)
        for question in data["qas"]:
            if question["category"] not in chinese:
                continue
            if not question["is_impossible"] and not gold_spans(question):
                continue
            for language, words in (
                ("en", question["question"]), ("zh", chinese[question["category"]]),
            ):  # fmt: skip
                started = time.perf_counter()
                answer = answered(document, words, options)
                rows[language].append((answer, question, 1000 * (time.perf_counter() - started)))
    by_category = {
        category: [
            sum(hits(a, q) for a, q, _ in rows[language] if q["category"] == category)
            for language in ("en", "zh")
        ]
        + [sum(not q["is_impossible"] for _, q, _ in rows["en"] if q["category"] == category)]
        for category in chinese
    }
    return {**{k: figures(v) for k, v in rows.items()}, "hits_en_zh_of": by_category}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="cuad,cail")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--off", default="")
    parser.add_argument("--cross", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--documents", type=int, default=30)
    args = parser.parse_args()
    args.off = args.off.split(",") if args.off else []
    figures_ = cross(args) if args.cross else steps(args)
    sys.stdout.write(json.dumps(figures_, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
