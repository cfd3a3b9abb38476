"""The project's own form: JSON lines, one document a line, as text or as a file beside the set.

Fields of a line: `doc_id`, `text` or `file`, `qas`; optional `title, lang, kind, source, licence`.
Fields of each of `qas`: `qid, question, answers, answer_starts` (-1: the answer is no span),
`is_impossible`; optional `category` (else `dataset` or `task` is taken for it), `choices` (a list,
or an object of letters), `answer` (the letter of the right choice), `label`, `reference_answer`,
and `gold_spans` ([start, end] pairs) for evidence that is not the words of an answer. Unknown
fields are left alone. A line with both `text` and `file` is read from `text`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eval.datasets.building import LANGUAGES, letters, text_document
from eval.datasets.gold import AnswerFinder, Gold
from eval.datasets.json_stream import json_lines
from eval.datasets.places import Fields, beside
from eval.types import EvalDocument, Question
from retrieval.errors import ParseError
from retrieval.parse import parse_file
from retrieval.types import Document, Language


def read(path: Path) -> Iterator[EvalDocument]:
    """The documents of a file in the project's own form. Raises DatasetError."""
    for line in json_lines(path):
        doc_id = line.label("doc_id", "")
        if not doc_id:
            raise line.error('there is no "doc_id"')
        title = line.text("title", doc_id)
        document = _document(line, title)
        finder = AnswerFinder(document.text)
        yield EvalDocument(
            doc_id=doc_id,
            title=title,
            lang=document.language,
            kind=line.text("kind", ""),
            document=document,
            questions=tuple(_question(fields, finder) for fields in line.rows("qas")),
            source=line.text("source", ""),
            licence=line.text("licence", ""),
        )


def _document(line: Fields, title: str) -> Document:
    if line.has("text"):
        text = line.text("text")
        if not text.strip():
            raise line.error("the document has no text", "Take the line out, or give its text")
        return text_document(text, title, _language(line))
    if not line.has("file"):
        raise line.error('there is neither "text" nor "file"')
    name = line.text("file")
    beside(line, name, "set")
    path = line.place.file.parent / name
    try:
        return parse_file(path, path.name)
    except FileNotFoundError as error:
        problem = f'the document "{name}" is not there ({path})'
        raise line.error(problem, "Names of files start from the folder of the set") from error
    except OSError as error:
        problem = f'the document "{name}" can\'t be opened ({error.strerror})'
        raise line.error(problem, "Give a file that can be read") from error
    except ParseError as error:
        problem = f'the document "{name}" can\'t be read: {str(error).rstrip(".")}'
        raise line.error(problem, "Take the line out, or give its text") from error


def _language(line: Fields) -> Language | None:
    name = line.text("lang", "")
    if name == "":
        return None
    if name not in LANGUAGES:
        raise line.error(f'"lang" is "{name}"', "Write en or zh, or leave it out")
    return LANGUAGES[name]


def _question(fields: Fields, finder: AnswerFinder) -> Question:
    impossible = fields.flag("is_impossible") or False
    choices = _choices(fields)
    answer = fields.text("answer", "")
    if choices and answer and answer not in tuple(letters(len(choices))):
        problem = f'"answer" is "{answer}", which is none of the {len(choices)} choices'
        raise fields.error(problem, f"Write one of {', '.join(letters(len(choices)))}")
    gold = _gold(fields, finder, choices, answer)
    label = fields.text("label", "")
    if impossible and gold.answers:
        problem = '"is_impossible" is true, but there are answers'
        raise fields.error(problem, "Say which of the two is meant")
    if not (impossible or gold.answers or answer or label):
        problem = 'there is no answer, and "is_impossible" is not true'
        raise fields.error(problem, "Give answers, or say that there are none")
    return Question(
        qid=fields.label("qid", "") or fields.path,
        question=fields.text("question"),
        answers=gold.answers,
        spans=gold.spans,
        is_impossible=impossible,
        category=fields.text("category", fields.text("dataset", fields.text("task", ""))),
        choices=choices,
        answer=answer,
        label=label,
        reference_answer=fields.text("reference_answer", ""),
    )


def _choices(fields: Fields) -> tuple[str, ...]:
    if not fields.has("choices"):
        return ()
    if isinstance(fields.values["choices"], list):
        texts = tuple(fields.texts("choices"))
        if len(texts) > len(letters(len(texts))):
            problem = f"there are {len(texts)} choices and no letters for all"
            raise fields.error(problem, f"Give at most {len(letters(len(texts)))}")
        return texts
    by_letter = fields.mapping("choices")
    names = sorted(by_letter.values)
    if "".join(names) != letters(len(names)):
        problem = f"the choices are called {', '.join(names)}"
        raise fields.error(problem, "Call them A, B, C and so on")
    return tuple(by_letter.text(name) for name in names)


def _gold(fields: Fields, finder: AnswerFinder, choices: tuple[str, ...], answer: str) -> Gold:
    answers = fields.texts("answers") if fields.has("answers") else []
    if not answers and choices and answer:
        return Gold((choices[letters(len(choices)).index(answer)],), ())
    starts = fields.integers("answer_starts") if answers else []
    if len(starts) != len(answers):
        problem = f"{len(answers)} answers have {len(starts)} answer_starts"
        raise fields.error(problem, "Give one start for each answer, -1 where it is no span")
    found = finder.locate(zip(answers, starts, strict=True), look_for_unplaced=False)
    if not fields.has("gold_spans"):
        return found
    spans = tuple(fields.pairs("gold_spans"))
    for start, end in spans:
        if not 0 <= start < end <= len(finder.text):
            problem = f"the gold span [{start}, {end}] is not inside the text"
            raise fields.error(problem, f"The text has {len(finder.text)} characters")
    return Gold(found.answers, spans)
