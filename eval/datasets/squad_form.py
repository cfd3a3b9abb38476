"""SQuAD 1.1 and 2.0, and CUAD, which is in SQuAD form with one contract a context.

    {"version", "data": [{"title", "paragraphs": [{"context", "qas": [
        {"id", "question", "answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}

A document is one context. Rajpurkar et al., "SQuAD" (2016) and "Know What You Don't Know" (2018);
Hendrycks et al., "CUAD" (2021).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from eval.datasets.building import eval_document
from eval.datasets.gold import AnswerFinder
from eval.datasets.json_stream import elements
from eval.datasets.places import Fields
from eval.types import EvalDocument, Question

_CATEGORY = re.compile(r"__(?P<category>.+?)(?:_\d+)?$")
"""CUAD's question ids: "<title>__Document Name"; a number follows in the split training file."""


def read_squad(path: Path) -> Iterator[EvalDocument]:
    """The contexts of a SQuAD file. Raises DatasetError."""
    return _read(path, cuad=False)


def read_cuad(path: Path) -> Iterator[EvalDocument]:
    """The contracts of a CUAD file; the category of a question is taken from its id. Raises
    DatasetError."""
    return _read(path, cuad=True)


def is_cuad(article: Fields) -> bool:
    """Whether the first element of "data" is one of CUAD's: its question ids hold the title."""
    title = article.text("title", "")
    return any(
        question.label("id", "").startswith(f"{title}__")
        for paragraph in article.rows("paragraphs")[:1]
        for question in paragraph.rows("qas")[:1]
    )


def _read(path: Path, cuad: bool) -> Iterator[EvalDocument]:
    for number, article in enumerate(elements(path, "data"), start=1):
        title = article.text("title", f"{path.stem} {number}")
        paragraphs = article.rows("paragraphs")
        for index, paragraph in enumerate(paragraphs, start=1):
            text = paragraph.text("context")
            if not text.strip():
                raise paragraph.error("the context has no text", "Take it out")
            finder = AnswerFinder(text)
            yield eval_document(
                text,
                [_question(fields, finder, cuad) for fields in paragraph.rows("qas")],
                doc_id=title if len(paragraphs) == 1 else f"{title}#{index}",
                title=title,
                kind="contract" if cuad else "article",
            )


def _question(fields: Fields, finder: AnswerFinder, cuad: bool) -> Question:
    qid = fields.label("id", "") or fields.path
    pairs = [
        (answer.text("text"), answer.integer("answer_start", -1))
        for answer in fields.rows("answers")
    ]
    impossible = fields.flag("is_impossible")
    if impossible is None and not pairs:
        problem = f'the question "{qid}" has no answer and does not say "is_impossible"'
        raise fields.error(
            problem, "The test part of the set may have no gold answers: take another"
        )
    if impossible is False and not pairs:
        raise fields.error(f'the question "{qid}" is said to have answers and has none')
    gold = finder.locate([] if impossible else pairs, look_for_unplaced=True)
    category = _CATEGORY.search(qid) if cuad else None
    return Question(
        qid=qid,
        question=fields.text("question").strip(),
        answers=gold.answers,
        spans=gold.spans,
        is_impossible=bool(impossible),
        category=category["category"] if category else "",
    )
