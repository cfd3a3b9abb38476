"""L-Eval: long texts with several instructions each, JSON lines, one file a task.

    {"instructions": [...], "input": text, "outputs": [...], "source", "evaluation"}

An et al., "L-Eval: Instituting Standardized Evaluation for Long Context Language Models" (2023).
Multiple-choice tasks hold their choices inside the instruction and may want several letters, so
they stay open questions. The answers have no places in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eval.datasets.building import eval_document
from eval.datasets.longbench_form import records
from eval.datasets.places import Fields
from eval.types import EvalDocument, Question


def read(path: Path) -> Iterator[EvalDocument]:
    """The texts of a task, or of all those of a folder. Raises DatasetError."""
    for number, fields in enumerate(records(path), start=1):
        task = fields.place.file.stem
        text = fields.text("input")
        if not text.strip():
            raise fields.error("the input has no text", "Take it out")
        yield eval_document(
            text,
            _questions(fields, task),
            doc_id=f"{task}-{fields.place.line or number}",
            title=f"{task} {number}",
            kind=fields.text("evaluation", task),
            source=fields.text("source", ""),
        )


def _questions(fields: Fields, task: str) -> list[Question]:
    asked, answers = fields.texts("instructions"), fields.texts("outputs")
    if len(asked) != len(answers):
        raise fields.error(f"{len(asked)} instructions have {len(answers)} outputs")
    return [
        Question(qid=str(number), question=question.strip(), answers=(answer,), category=task)
        for number, (question, answer) in enumerate(zip(asked, answers, strict=True), start=1)
    ]
