"""Builds the documents of question sets out of what the readers found.

Knows no form: it takes texts and questions, and makes their identifiers unique, which records of a
run need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from eval.types import EvalDocument, Question
from retrieval.language import detect
from retrieval.types import Document, DocumentPage, Language

LANGUAGES: Mapping[str, Language] = {"en": "en", "zh": "zh"}
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def text_document(text: str, title: str, lang: Language | None = None) -> Document:
    """A document of one page that is `text` as it stands; its language is told from the text
    unless it is given."""
    language = lang or detect(text)
    return Document(text, (DocumentPage(1, 0, len(text)),), title, "text/plain", language)


def eval_document(
    text: str,
    questions: Iterable[Question],
    *,
    doc_id: str,
    title: str = "",
    kind: str = "",
    lang: Language | None = None,
    source: str = "",
    licence: str = "",
) -> EvalDocument:
    """A document given as text; `title` is the identifier when there is none."""
    document = text_document(text, title or doc_id, lang)
    return EvalDocument(
        doc_id=doc_id,
        title=title or doc_id,
        lang=document.language,
        kind=kind,
        document=document,
        questions=tuple(questions),
        source=source,
        licence=licence,
    )


def letters(count: int) -> str:
    """The letters of so many choices: "ABCD" for four."""
    return _LETTERS[:count]


def unique_names(documents: Iterable[EvalDocument]) -> Iterator[EvalDocument]:
    """The documents, each with an identifier of its own, and unique question identifiers in each.

    The second one called "x" becomes "x~2", in the order of the file, so that names are the same
    each time it is read. Question sets do repeat them (CUAD asks the same 41 questions of each
    contract; some copies hold a document twice).
    """
    taken: set[str] = set()
    for document in documents:
        qids: set[str] = set()
        questions = tuple(
            replace(question, qid=_free(question.qid, qids)) for question in document.questions
        )
        yield replace(document, doc_id=_free(document.doc_id, taken), questions=questions)


def _free(name: str, taken: set[str]) -> str:
    """`name`, or with the lowest number that makes it new; then it is taken."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}~{number}"
    taken.add(found)
    return found
