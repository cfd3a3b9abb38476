"""LongBench and LongBench v2: one question on one long text a record.

LongBench, JSON lines, one file a task: `input, context, answers, length, dataset, language,
all_classes, _id`. Bai et al., "LongBench" (2023). Tasks whose input is empty (summaries, code,
counting) are asked in the words of `INSTRUCTIONS`. The answers have no places in the text.

LongBench v2, one JSON list or JSON lines: `_id, domain, sub_domain, difficulty, length, question,
choice_A` to `choice_D`, `answer` (a letter), `context`. Bai et al., "LongBench v2" (2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from eval.datasets.building import LANGUAGES, eval_document, letters
from eval.datasets.json_stream import elements, first_keys, json_lines
from eval.datasets.places import Fields, Place
from eval.types import EvalDocument, Question

INSTRUCTIONS: Mapping[str, str] = {
    "gov_report": "Write a one-page summary of the report.",
    "multi_news": "Write a one-page summary of all the news.",
    "vcsum": "请写一段总结，总结会议的内容。",
    "passage_count": "How many different paragraphs are there, not counting repetitions?",
    "lcc": "Write the next line of the code.",
}
"""What the benchmark asks in the tasks that have no input of their own, by task; the names of
LongBench-E end in "_e"."""
_CHOICES = letters(4)


def records(path: Path) -> Iterator[Fields]:
    """The records of a JSON list, of a JSON lines file, or of all the latter in a folder."""
    if path.is_dir():
        files = sorted(path.rglob("*.jsonl"))
        if not files:
            raise Place(path).error("the folder holds no .jsonl files", "Name the right folder")
        for file in files:
            yield from json_lines(file)
        return
    _, listed = first_keys(path, frozenset())
    yield from elements(path, None) if listed else json_lines(path)


def read(path: Path) -> Iterator[EvalDocument]:
    """The texts of a LongBench task, or of all those of a folder. Raises DatasetError."""
    for number, fields in enumerate(records(path), start=1):
        task = fields.text("dataset", fields.place.file.stem)
        yield eval_document(
            _context(fields),
            [_question(fields, task)],
            doc_id=fields.label("_id", f"{task}-{number}"),
            title=f"{task} {number}",
            kind=task,
            lang=LANGUAGES.get(fields.text("language", "")),
        )


def read_v2(path: Path) -> Iterator[EvalDocument]:
    """The texts of LongBench v2. Raises DatasetError."""
    for number, fields in enumerate(records(path), start=1):
        choices = tuple(fields.text(f"choice_{letter}") for letter in _CHOICES)
        answer = fields.text("answer")
        if answer not in tuple(_CHOICES):
            raise fields.error(f'"answer" is "{answer}"', "It has to be A, B, C or D")
        name = fields.label("_id", f"{path.stem}-{number}")
        domain = fields.text("domain", "")
        question = Question(
            qid=name,
            question=fields.text("question"),
            answers=(choices[_CHOICES.index(answer)],),
            category=domain,
            choices=choices,
            answer=answer,
        )
        parts = (domain, fields.text("sub_domain", ""), fields.text("difficulty", ""))
        yield eval_document(
            _context(fields),
            [question],
            doc_id=name,
            kind=" / ".join(part for part in parts if part),
        )


def _context(fields: Fields) -> str:
    text = fields.text("context")
    if not text.strip():
        raise fields.error("the context has no text", "Take it out")
    return text


def _question(fields: Fields, task: str) -> Question:
    asked = fields.text("input", "").strip()
    if not asked:
        asked = INSTRUCTIONS.get(task.removesuffix("_e"), "")
    if not asked:
        problem = f'the input is empty and the task "{task}" is not known'
        raise fields.error(problem, f"Known without input: {', '.join(INSTRUCTIONS)}")
    answers = tuple(fields.texts("answers"))
    if not answers:
        raise fields.error('"answers" is empty', "Take the record out")
    classes = fields.texts("all_classes") if fields.has("all_classes") else []
    return Question(
        qid=fields.label("_id", "1"),
        question=asked,
        answers=answers,
        category=task,
        label=answers[0] if classes else "",
    )
