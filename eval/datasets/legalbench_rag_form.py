"""LegalBench-RAG: questions with the places of their answers in a corpus of legal texts.

    corpus/<set>/<name>.txt
    benchmarks/<set>.json: {"tests": [{"query", "snippets": [{"file_path", "span": [start, end]}]}]}

Pipitone and Houir Alami, "LegalBench-RAG" (2024). A question whose snippets lie in several texts is
asked of each of them. Offsets count characters as Python's text mode reads the corpus: UTF-8 with
any mark at its start kept, line ends as "\\n".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

from eval.datasets.building import eval_document
from eval.datasets.gold import AnswerFinder
from eval.datasets.json_stream import elements
from eval.datasets.places import Fields, Place, beside, sound
from eval.types import EvalDocument, Question

_BENCHMARKS, _CORPUS = "benchmarks", "corpus"


def is_folder_of(path: Path) -> bool:
    """Whether a folder holds the corpus and the benchmarks."""
    return (path / _BENCHMARKS).is_dir() and (path / _CORPUS).is_dir()


def read(path: Path) -> Iterator[EvalDocument]:
    """The texts that are asked about: of the whole set, or of one file of its benchmarks. Raises
    DatasetError."""
    files = sorted((path / _BENCHMARKS).glob("*.json")) if path.is_dir() else [path]
    corpus = (path if path.is_dir() else path.parent.parent) / _CORPUS
    if not files or not corpus.is_dir():
        problem = f"there is no folder {_CORPUS} beside a folder {_BENCHMARKS} with .json files"
        raise Place(path).error(problem, "Give the folder that holds both")
    asked: dict[str, list[tuple[str, Fields]]] = {}
    for file in files:
        for number, test in enumerate(elements(file, "tests"), start=1):
            names = dict.fromkeys(row.text("file_path") for row in test.rows("snippets"))
            for name in names:
                asked.setdefault(name, []).append((f"{file.stem}-{number}", test))
    for name, tests in asked.items():
        text = sound(_text(corpus, name, tests[0][1]))
        finder = AnswerFinder(text)
        yield eval_document(
            text,
            [_question(qid, test, name, finder) for qid, test in tests],
            doc_id=name,
            title=Path(name).stem,
            kind=Path(name).parent.name,
        )


def _text(corpus: Path, name: str, test: Fields) -> str:
    beside(test, name, "corpus")
    # Archives made on a Mac hold names in decomposed form.
    spellings = dict.fromkeys((name, *(unicodedata.normalize(f, name) for f in ("NFC", "NFD"))))
    for spelling in spellings:
        path = corpus / spelling
        if not path.is_file():
            continue
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise Place(path).error("the text is not UTF-8", "Save it again as UTF-8") from error
    raise test.error(f'the text "{name}" is not in {corpus}', "Copy the whole corpus")


def _question(qid: str, test: Fields, name: str, finder: AnswerFinder) -> Question:
    pairs = []
    for row in test.rows("snippets"):
        if row.text("file_path") != name:
            continue
        bounds = row.integers("span")
        if len(bounds) != 2 or not 0 <= bounds[0] < bounds[1] <= len(finder.text):
            raise row.error(f"the span {bounds} is not inside {name}")
        start, end = bounds
        pairs.append((row.text("answer", finder.text[start:end]), start))
    gold = finder.locate(pairs, look_for_unplaced=False)
    return Question(
        qid=qid,
        question=test.text("query"),
        answers=gold.answers,
        spans=gold.spans,
        category=qid.rpartition("-")[0],
    )
