"""ContractNLI: hypotheses about non-disclosure agreements with the spans that prove them.

    {"documents": [{"id", "file_name", "text", "spans": [[start, end]], "document_type", "url",
        "annotation_sets": [{"annotations": {"nda-1": {"choice", "spans": [index]}}}]}],
     "labels": {"nda-1": {"short_description", "hypothesis"}}}

Koreeda and Manning, "ContractNLI" (2021). The choice (Entailment, Contradiction, NotMentioned) is
the question's label; NotMentioned is a question that the document does not answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from eval.datasets.building import eval_document
from eval.datasets.json_stream import elements, member
from eval.datasets.places import Fields
from eval.types import EvalDocument, Question, Span

_CHOICES = ("Entailment", "Contradiction", "NotMentioned")


def read(path: Path) -> Iterator[EvalDocument]:
    """The agreements of a ContractNLI file. Raises DatasetError."""
    # The hypotheses stand behind the documents, so the file is gone through twice.
    labels = member(path, "labels")
    hypotheses = {name: labels.mapping(name) for name in labels.values}
    for fields in elements(path, "documents"):
        text = fields.text("text")
        if not text.strip():
            raise fields.error("the document has no text", "Take it out")
        title = fields.text("file_name", "")
        yield eval_document(
            text,
            _questions(fields, text, hypotheses),
            doc_id=f"contractnli:{path.stem}-{fields.label('id', title)}",
            title=title,
            kind="NDA",
            source=fields.text("url", ""),
        )


def _questions(fields: Fields, text: str, hypotheses: Mapping[str, Fields]) -> Iterator[Question]:
    spans = fields.pairs("spans")
    for span in spans:
        if not 0 <= span[0] < span[1] <= len(text):
            raise fields.error(f"the span {list(span)} is not inside the text")
    sets = fields.rows("annotation_sets")
    if not sets:
        return
    annotations = sets[0].mapping("annotations")
    for name in annotations.values:
        if name not in hypotheses:
            raise annotations.error(f'"labels" has no hypothesis "{name}"')
        yield _question(name, annotations.mapping(name), hypotheses[name], text, spans)


def _question(
    name: str, annotation: Fields, hypothesis: Fields, text: str, spans: list[Span]
) -> Question:
    choice = annotation.text("choice")
    if choice not in _CHOICES:
        raise annotation.error(f'"choice" is "{choice}" and none of {", ".join(_CHOICES)}')
    impossible = choice == "NotMentioned"
    indices = annotation.integers("spans") if annotation.has("spans") else []
    for index in indices:
        if not 0 <= index < len(spans):
            raise annotation.error(f"there is no span {index}: the document has {len(spans)}")
    gold = () if impossible else tuple(spans[index] for index in indices)
    return Question(
        qid=name,
        question=hypothesis.text("hypothesis"),
        answers=tuple(text[start:end] for start, end in gold),
        spans=gold,
        is_impossible=impossible,
        category=hypothesis.text("short_description", name),
        label=choice,
    )
