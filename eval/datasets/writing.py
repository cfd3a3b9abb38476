"""Writes documents with questions as JSON lines in the project's own form, which `own_form` reads
back to the same values."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from app.db.session import translate_os_error
from eval.datasets.building import letters
from eval.datasets.places import Place
from eval.types import EvalDocument, Question, Span

_ELSEWHERE = "Choose another place with --out"


@dataclass(frozen=True, slots=True)
class Written:
    """What a file holds. `unplaced` counts questions with answers of which none has a place in its
    document: citations and retrieval can't be scored on them."""

    documents: int
    questions: int
    unanswerable: int
    unplaced: int


def write_jsonl(documents: Iterable[EvalDocument], path: Path) -> Written:
    """Writes one document a line, UTF-8; the file is there whole or not at all. Raises DatasetError
    when it can't be written, StorageFull, and lets the errors of the documents through."""
    count = questions = unanswerable = unplaced = 0
    if path.exists() and not path.is_file():
        raise Place(path).error("this is no file, so none can take its place", _ELSEWHERE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        problem = f"the file can't be written ({error.strerror})"
        raise Place(path).error(problem, _ELSEWHERE) from error
    draft = Path(name)
    try:
        # Unbuffered: on a full disk a buffer would fail once more when the file is closed.
        with os.fdopen(handle, "wb", buffering=0) as file:
            for document in documents:
                _write(file, json.dumps(_line(document), ensure_ascii=False) + "\n", path)
                count += 1
                questions += len(document.questions)
                unanswerable += sum(q.is_impossible for q in document.questions)
                unplaced += sum(not (q.is_impossible or q.spans) for q in document.questions)
        draft.chmod(0o644)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return Written(count, questions, unanswerable, unplaced)


def _write(file: FileIO, line: str, path: Path) -> None:
    left = memoryview(line.encode())
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise translate_os_error(error, path) from error


def _line(document: EvalDocument) -> dict[str, object]:
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "lang": document.lang,
        "kind": document.kind,
        "text": document.text,
        "source": document.source,
        "licence": document.licence,
        "qas": [_question(question, document.text) for question in document.questions],
    }


def _question(question: Question, text: str) -> dict[str, object]:
    starts = _starts(question, text)
    written: dict[str, object] = {
        "qid": question.qid,
        "question": question.question,
        "answers": list(question.answers),
        "answer_starts": starts,
        "is_impossible": question.is_impossible,
    }
    for name in ("category", "answer", "label", "reference_answer"):
        if value := getattr(question, name):
            written[name] = value
    if question.choices:
        names = letters(len(question.choices))
        written["choices"] = dict(zip(names, question.choices, strict=True))
    told = tuple(
        (start, start + len(answer))
        for answer, start in zip(question.answers, starts, strict=True)
        if start >= 0
    )
    if told != question.spans:
        written["gold_spans"] = [list(span) for span in question.spans]
    return written


def _starts(question: Question, text: str) -> list[int]:
    """The start of each answer that the next span holds word for word, -1 for the others."""
    starts, spans = [], list[Span](question.spans)
    for answer in question.answers:
        held = bool(spans) and text[spans[0][0] : spans[0][1]] == answer
        starts.append(spans.pop(0)[0] if held else -1)
    return starts
