"""CAIL2019 reading comprehension (CJRC): Chinese court facts with the answers of up to three
annotators.

    {"data": [{"caseid", "domain": "civil" | "criminal", "paragraphs": [{"casename", "context",
        "qas": [{"id", "question", "is_impossible": "true" | "false",
                 "answers": [{"text", "answer_start"}]}]}]}]}

Duan et al., "CJRC: A Reliable Human-Annotated Benchmark DataSet for Chinese Judicial Reading
Comprehension" (2019). An annotator who found no answer left it empty. The flag `is_impossible` and
the answers contradict each other here and there; the official scorer goes by the answers, and so
does this reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eval.datasets.building import eval_document
from eval.datasets.gold import AnswerFinder
from eval.datasets.json_stream import elements
from eval.datasets.places import Fields
from eval.types import EvalDocument, Question

_VERDICTS = frozenset({"YES", "NO"})


def read(path: Path) -> Iterator[EvalDocument]:
    """The cases of a CAIL2019 file. Raises DatasetError."""
    for number, case in enumerate(elements(path, "data"), start=1):
        name = case.label("caseid", str(number))
        domain = case.text("domain", "")
        paragraphs = case.rows("paragraphs")
        for index, paragraph in enumerate(paragraphs, start=1):
            text = paragraph.text("context")
            if not text.strip():
                raise paragraph.error("the context has no text", "Take it out")
            finder = AnswerFinder(text)
            yield eval_document(
                text,
                [_question(fields, finder) for fields in paragraph.rows("qas")],
                doc_id=name if len(paragraphs) == 1 else f"{name}#{index}",
                title=paragraph.text("casename", name),
                kind=f"court facts ({domain})" if domain else "court facts",
                lang="zh",
            )


def is_cail(case: Fields) -> bool:
    """Whether the first element of "data" is one of CAIL's."""
    return case.has("caseid") or any(
        paragraph.has("casename") for paragraph in case.rows("paragraphs")[:1]
    )


def _question(fields: Fields, finder: AnswerFinder) -> Question:
    pairs = [
        (answer.text("text", ""), answer.integer("answer_start", -1))
        for answer in fields.rows("answers")
    ]
    gold = finder.locate(pairs, look_for_unplaced=True)
    verdict = bool(gold.answers) and set(gold.answers) <= _VERDICTS
    return Question(
        qid=fields.label("id", "") or fields.path,
        question=fields.text("question").strip(),
        answers=gold.answers,
        spans=gold.spans,
        is_impossible=not gold.answers,
        category="yesno" if verdict else "extractive" if gold.answers else "unanswerable",
    )
