"""Which questions a run asks: a seeded sample that is the same in every mode.

Files get equal shares as far as they have questions. Within a file the share of unanswerable
questions is the file's own, and questions come from as many documents as there are. Document length
is estimated from characters (`eval.runs.material.CHARS_A_TOKEN`), so that a limit in tokens chooses
the same questions for every model. Documents are passed by one at a time and never kept.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from eval.datasets import Form, open_dataset
from eval.errors import DatasetError
from eval.runs.material import estimated_tokens
from eval.types import EvalDocument, Question
from retrieval.types import Language

Only = Literal["all", "answerable", "unanswerable"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which questions may be drawn. `limit` 0 takes all; tokens are estimates."""

    limit: int = 0
    seed: int = 0
    only: Only = "all"
    min_tokens: int | None = None
    max_tokens: int | None = None
    lang: Language | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """One question of a set by its place: number of the file, of the document in it and of the
    question in that. `name` is unique among all questions of the files."""

    name: str
    dataset: str
    doc_id: str
    qid: str
    place: tuple[int, int, int]
    answerable: bool
    lang: Language
    tokens: int
    digest: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A document with the questions that are asked of it, by unique name."""

    dataset: str
    document: EvalDocument
    questions: tuple[tuple[str, Question], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """Questions in the order in which they are asked."""

    paths: tuple[Path, ...]
    form: Form | None
    listed: tuple[Listed, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over names, questions and document texts."""
        whole = hashlib.sha256()
        for item in self.listed:
            whole.update(f"{item.name}\0{item.digest}\n".encode())
        return whole.hexdigest()

    @property
    def documents(self) -> int:
        """How many documents are opened."""
        return len({item.place[:2] for item in self.listed})

    def opened(self, skip: frozenset[str] = frozenset()) -> Iterator[Planned]:
        """The documents, one at a time, with the questions that are not in `skip`."""
        wanted: dict[tuple[int, int], list[Listed]] = {}
        for item in self.listed:
            if item.name not in skip:
                wanted.setdefault(item.place[:2], []).append(item)
        for number, path in enumerate(self.paths):
            last = max((place[1] for place in wanted if place[0] == number), default=-1)
            if last < 0:
                continue
            for position, document in enumerate(open_dataset(path, self.form)):
                items = wanted.get((number, position), [])
                if items:
                    asked = tuple((i.name, document.questions[i.place[2]]) for i in items)
                    yield Planned(items[0].dataset, document, asked)
                if position == last:
                    break


def draw_sample(paths: Sequence[Path], form: Form | None, wanted: Wanted) -> Sample:
    """Look through the files and draw. Raises DatasetError when no question is left."""
    listed = list(list_questions(paths, form))
    fitting = [item for item in listed if _fits(item, wanted)]
    if not fitting:
        raise DatasetError(
            f"None of the {len(listed)} questions in {', '.join(str(path) for path in paths)} fits "
            "the filters. Widen --only, --lang, --min-tokens or --max-tokens."
        )
    return Sample(tuple(paths), form, tuple(_drawn(fitting, wanted)))


def list_questions(paths: Sequence[Path], form: Form | None) -> Iterable[Listed]:
    """Every question of the files, in order. A qid that occurs twice is given its document's id,
    and its set's name where that is not enough. Raises DatasetError where it stays ambiguous."""
    found: list[Listed] = []
    for number, (path, dataset) in enumerate(zip(paths, _names(paths), strict=True)):
        for position, document in enumerate(open_dataset(path, form)):
            text = hashlib.sha256(document.text.encode()).hexdigest()
            tokens = estimated_tokens(len(document.text), document.lang)
            found += [
                Listed(
                    name=question.qid,
                    dataset=dataset,
                    doc_id=document.doc_id,
                    qid=question.qid,
                    place=(number, position, index),
                    answerable=not question.is_impossible,
                    lang=document.lang,
                    tokens=tokens,
                    digest=_digest(text, question),
                )
                for index, question in enumerate(document.questions)
            ]
    for prefix in ("{0.doc_id}", "{0.dataset}/{0.doc_id}"):
        counts = Counter(item.name for item in found)
        found = [
            replace(item, name=f"{prefix.format(item)}/{item.qid}")
            if counts[item.name] > 1
            else item
            for item in found
        ]
    counts = Counter(item.name for item in found)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise DatasetError(
            f"The question {twice[0]} stands twice in {', '.join(str(path) for path in paths)}. "
            "Give its qid or doc_id another name, or name each file once."
        )
    return found


def _digest(text_sha256: str, question: Question) -> str:
    parts = (
        text_sha256, question.question, question.answers, question.spans, question.is_impossible,
        question.choices, question.answer,
    )  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _names(paths: Sequence[Path]) -> list[str]:
    """A name for each file: its stem, with its folder where two share a stem."""
    counts = Counter(path.stem for path in paths)
    return [
        f"{path.absolute().parent.name}/{path.stem}" if counts[path.stem] > 1 else path.stem
        for path in paths
    ]


def _fits(item: Listed, wanted: Wanted) -> bool:
    return (
        (wanted.only == "all" or item.answerable == (wanted.only == "answerable"))
        and (wanted.lang is None or item.lang == wanted.lang)
        and (wanted.min_tokens is None or item.tokens >= wanted.min_tokens)
        and (wanted.max_tokens is None or item.tokens <= wanted.max_tokens)
    )


def _drawn(fitting: Sequence[Listed], wanted: Wanted) -> list[Listed]:
    if wanted.limit <= 0 or wanted.limit >= len(fitting):
        return list(fitting)
    files: dict[int, list[Listed]] = {}
    for item in fitting:
        files.setdefault(item.place[0], []).append(item)
    shares = even_shares({number: len(items) for number, items in files.items()}, wanted.limit)
    chosen: list[Listed] = []
    for number, items in files.items():
        chosen += _drawn_of_file(items, shares[number], random.Random(f"{wanted.seed}/{number}"))
    return sorted(chosen, key=lambda item: item.place)


def even_shares(sizes: dict[int, int], total: int) -> dict[int, int]:
    """`total` in equal shares, none larger than its size; what a small one leaves goes to the
    others, remainders to the first."""
    shares = dict.fromkeys(sizes, 0)
    left = min(total, sum(sizes.values()))
    while left:
        open_ones = [name for name in sizes if shares[name] < sizes[name]]
        each = max(1, left // len(open_ones))
        for name in open_ones:
            more = min(each, sizes[name] - shares[name], left)
            shares[name] += more
            left -= more
    return shares


def _drawn_of_file(items: Sequence[Listed], count: int, source: random.Random) -> list[Listed]:
    """`count` questions in the file's proportion of answerable ones, spread over documents."""
    answerable = [item for item in items if item.answerable]
    others = [item for item in items if not item.answerable]
    # At least one of each kind there is, where two are drawn: both kinds are measured.
    share = round(count * len(answerable) / len(items))
    if answerable and others and count > 1:
        share = min(max(share, 1), count - 1)
    share = max(min(share, len(answerable)), count - len(others))
    documents = sorted({item.place[1] for item in items})
    source.shuffle(documents)
    order = {document: rank for rank, document in enumerate(documents)}
    used = Counter[int]()
    chosen: list[Listed] = []
    for kind, wanted in ((answerable, share), (others, count - share)):
        waiting: dict[int, list[Listed]] = {}
        for item in kind:
            waiting.setdefault(item.place[1], []).append(item)
        for group in waiting.values():
            source.shuffle(group)
        heap = [(used[document], order[document], document) for document in waiting]
        heapq.heapify(heap)
        for _ in range(wanted):
            _, rank, document = heapq.heappop(heap)
            chosen.append(waiting[document].pop())
            used[document] += 1
            if waiting[document]:
                heapq.heappush(heap, (used[document], rank, document))
    return chosen
