"""The forms of question sets that can be read, how they are told apart, and the one way in.

Knows no network: see `hub`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from eval.datasets import (
    cail_form,
    contract_nli_form,
    legalbench_rag_form,
    leval_form,
    longbench_form,
    own_form,
    squad_form,
)
from eval.datasets.building import unique_names
from eval.datasets.json_stream import elements, first_keys
from eval.datasets.places import Place
from eval.errors import DatasetError
from eval.types import EvalDocument

Form = Literal[
    "jsonl", "squad", "cuad", "contractnli", "legalbench-rag", "longbench", "longbench-v2",
    "leval", "cail",
]  # fmt: skip
FORM_NAMES: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True, slots=True)
class Reader:
    """How a form is read: `read` takes a file (or a folder, with `folders`) and gives its documents
    one by one. `shape` says how the form is known, for messages."""

    read: Callable[[Path], Iterator[EvalDocument]]
    shape: str
    folders: bool = False


FORMS: Mapping[Form, Reader] = {
    "jsonl": Reader(own_form.read, "JSON lines with doc_id, text or file, qas"),
    "squad": Reader(squad_form.read_squad, '{"data": [{"paragraphs": …}]}'),
    "cuad": Reader(squad_form.read_cuad, "as squad, question ids begin with the title"),
    "contractnli": Reader(contract_nli_form.read, '{"documents": …, "labels": …}'),
    "legalbench-rag": Reader(
        legalbench_rag_form.read, 'a folder with corpus/ and benchmarks/, or {"tests": …}', True
    ),
    "longbench": Reader(
        longbench_form.read, "JSON lines with input, context, answers; or a folder of them", True
    ),
    "longbench-v2": Reader(
        longbench_form.read_v2, "a list or JSON lines with question, choice_A, context"
    ),
    "leval": Reader(
        leval_form.read, "JSON lines with instructions, input, outputs; or a folder of them", True
    ),
    "cail": Reader(cail_form.read, "as squad, with caseid or casename"),
}
_LISTS = frozenset({"data", "documents", "tests"})
_RECORDS: Mapping[Form, frozenset[str]] = {
    "jsonl": frozenset({"doc_id", "qas"}),
    "leval": frozenset({"instructions", "outputs"}),
    "longbench-v2": frozenset({"choice_A", "context"}),
    "longbench": frozenset({"input", "context", "answers"}),
}


def open_dataset(path: Path, form: Form | None = None) -> Iterator[EvalDocument]:
    """The documents of a question set, one at a time; its form is told from the content unless it
    is given. Identifiers are unique: `doc_id` in the set, `qid` in its document.

    Raises DatasetError, which names file, line and what to do, when the documents are asked for.
    """
    found = form or detect_form(path)
    reader = FORMS[found]
    if path.is_dir() and not reader.folders:
        names = sorted(child.name for child in path.iterdir() if child.is_file())
        problem = f"this is a folder; {found} is read from a file"
        raise Place(path).error(problem, f"Name one of {', '.join(names[:8]) or 'its files'}")
    yield from unique_names(reader.read(path))


def named_form(name: str) -> Form:
    """The form of this name. Raises DatasetError, which lists those there are."""
    known: dict[str, Form] = {form: form for form in FORM_NAMES}
    if name not in known:
        raise DatasetError(f"There is no form {name!r}. There are: {', '.join(known)}.")
    return known[name]


def detect_form(path: Path) -> Form:
    """The form of a file or folder, by the names of its first fields. Raises DatasetError."""
    if path.is_dir():
        return _form_of_folder(path)
    try:
        keys, listed = first_keys(path, _LISTS)
    except DatasetError as error:
        if not path.is_file() or path.stat().st_size == 0:
            raise
        raise DatasetError(f"{error.message} {_forms()}", details=error.details) from error
    if not listed:
        if "documents" in keys:
            return "contractnli"
        if "tests" in keys:
            return "legalbench-rag"
        if "data" in keys:
            return _form_of_articles(path)
    for form, wanted in _RECORDS.items():
        if wanted <= keys:
            return form
    shown = ", ".join(sorted(keys)[:12]) or "none"
    raise _unknown(Place(path), f"the form is not known by the first fields ({shown})")


def _form_of_articles(path: Path) -> Form:
    for article in elements(path, "data"):
        if cail_form.is_cail(article):
            return "cail"
        return "cuad" if squad_form.is_cuad(article) else "squad"
    return "squad"


def _form_of_folder(path: Path) -> Form:
    if legalbench_rag_form.is_folder_of(path):
        return "legalbench-rag"
    for file in sorted(path.rglob("*.jsonl")):
        form = detect_form(file)
        if FORMS[form].folders:
            return form
        break
    names = sorted(child.name for child in path.iterdir())
    shown = ", ".join(names[:8]) or "nothing"
    problem = f"this is a folder of no form that is read as one (it holds {shown})"
    raise Place(path).error(problem, "Name a file in it")


def _unknown(place: Place, problem: str) -> DatasetError:
    return place.error(problem, _forms().rstrip("."))


def _forms() -> str:
    shapes = "; ".join(f"{name}: {reader.shape}" for name, reader in FORMS.items())
    return f"The forms that are read, to be named by --form: {shapes}."
