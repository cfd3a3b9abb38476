"""Generates documents with planted facts: real text of a wanted length, clauses planted at wanted
depths, and questions with exact gold spans.

A document's length is counted by one model's tokenizer, planted clauses included, the question not.
Knows no files: see `texts`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.tokenizer import Tokenizer
from eval.datasets.building import eval_document
from eval.errors import DatasetError
from eval.tasks.haystack import JOINT, Text, Window, window
from eval.tasks.plans import make_plan
from eval.tasks.types import SWEPT, TASK_NAMES, Asked, Generated, Needle, TaskName
from eval.tasks.wording import Invention
from eval.types import EvalDocument, Question, Span
from retrieval.types import Language

TOLERANCE = 0.02
"""Share by which the length of a document may differ from the wanted one."""
_CLOSE = 0.004
_ATTEMPTS = 4
MIN_TOKENS = 1024
_LONGEST_SOURCE = 3


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What to generate: for each language of the texts `count` documents of each task and length,
    and of each of `depths` evenly spaced depths in the tasks that have one."""

    tasks: Sequence[TaskName] = TASK_NAMES
    lengths: Sequence[int] = (4096,)
    depths: int = 5
    count: int = 1
    seed: int = 0
    twins: bool = True
    repeat: bool = False

    def __post_init__(self) -> None:
        """Raises DatasetError for what can't be generated."""
        for length in self.lengths:
            if length < MIN_TOKENS:
                raise DatasetError(f"{length} tokens are too few; ask for {MIN_TOKENS:,} or more.")
        if self.depths < 1 or self.count < 1 or not self.tasks or not self.lengths:
            raise DatasetError("Ask for at least one task, length, depth and document.")

    def sweep(self, task: TaskName) -> tuple[float, ...]:
        """The depths of a task, from the start of the document to its end."""
        if task not in SWEPT or self.depths == 1:
            return (0.5,)
        return tuple(step / (self.depths - 1) for step in range(self.depths))

    def total(self, languages: int) -> int:
        """How many documents that makes for texts in so many languages."""
        steps = sum(len(self.sweep(task)) for task in self.tasks)
        return languages * len(self.lengths) * steps * self.count


def named_tasks(names: Sequence[str]) -> tuple[TaskName, ...]:
    """The tasks of these names. Raises DatasetError, which lists those there are."""
    known: dict[str, TaskName] = {task: task for task in TASK_NAMES}
    for name in names:
        if name not in known:
            raise DatasetError(f"There is no task {name!r}. There are: {', '.join(known)}.")
    return tuple(dict.fromkeys(known[name] for name in names))


def generate(texts: Sequence[Text], plan: TaskPlan, tokenizer: Tokenizer) -> Iterator[EvalDocument]:
    """The documents of `generate_counted`."""
    for generated in generate_counted(texts, plan, tokenizer):
        yield generated.document


def generate_counted(
    texts: Sequence[Text], plan: TaskPlan, tokenizer: Tokenizer
) -> Iterator[Generated]:
    """Documents with planted facts, shortest first; the same for the same texts, plan and
    tokenizer.

    Raises DatasetError when the texts of a language are too short for a length.
    """
    for wanted in _wanted(plan, languages(texts)):
        rng = random.Random(f"{plan.seed}/{wanted.doc_id}")
        usable = [text for text in texts if text.lang == wanted.lang]
        haystack = window(usable, wanted.tokens, rng, repeat=plan.repeat)
        invention = Invention(wanted.lang, haystack.text, rng)
        planted = make_plan(wanted.task, invention, wanted.depth)
        text, starts, tokens = _grown(haystack, planted.needles, wanted.tokens, tokenizer)
        asked = [one for one in planted.asked if plan.twins or one.answer is not None]
        document = eval_document(
            text,
            [
                _question(f"{wanted.doc_id}-{number}", wanted.task, one, starts)
                for number, one in enumerate(asked, start=1)
            ],
            doc_id=wanted.doc_id,
            kind=f"needle/{wanted.task}" + (" (repeated text)" if haystack.rounds > 1 else ""),
            lang=wanted.lang,
            source=_source(haystack, tokens),
        )
        yield Generated(document, tokens)


def languages(texts: Sequence[Text]) -> tuple[Language, ...]:
    """The languages of the texts."""
    return tuple(sorted({text.lang for text in texts}))


def size_name(tokens: int) -> str:
    """ "16K" for 16,384, else the number."""
    return f"{tokens // 1024}K" if tokens % 1024 == 0 else str(tokens)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One document to generate."""

    doc_id: str
    task: TaskName
    lang: Language
    tokens: int
    depth: float


def _wanted(plan: TaskPlan, langs: Sequence[Language]) -> Iterator[_Wanted]:
    for tokens, lang, task in itertools.product(sorted(plan.lengths), langs, plan.tasks):
        for depth in plan.sweep(task):
            at = f"-d{round(100 * depth)}" if task in SWEPT else ""
            for number in range(1, plan.count + 1):
                doc_id = f"{task}-{lang}-{size_name(tokens)}{at}-{number}"
                yield _Wanted(doc_id, task, lang, tokens, depth)


def _grown(
    haystack: Window, needles: Sequence[Needle], tokens: int, tokenizer: Tokenizer
) -> tuple[str, list[int], int]:
    """The text with the needles planted, the start of each, and its length in tokens."""
    budget = tokens - sum(len(tokenizer.encode(needle.text)) for needle in needles)
    best: tuple[str, list[int], int] | None = None
    # Tokens join over the borders of what was put together, so the sum of the parts is not exact.
    for _ in range(_ATTEMPTS):
        if budget <= 0:
            break
        text, starts = _plant(haystack.cut(budget), needles)
        count = len(tokenizer.encode(text))
        if best is None or abs(count - tokens) < abs(best[2] - tokens):
            best = text, starts, count
        if abs(count - tokens) <= _CLOSE * tokens:
            break
        budget += tokens - count
    if best is None or abs(best[2] - tokens) > TOLERANCE * tokens:
        raise DatasetError(
            f"No document of {tokens:,} tokens could be made of these texts and "
            f"{len(needles)} planted clauses. Ask for another length."
        )
    return best


def _plant(haystack: Window, needles: Sequence[Needle]) -> tuple[str, list[int]]:
    """The needles as paragraphs of their own, each near its depth, and the start of each."""
    places = [haystack.place(needle.depth) for needle in needles]
    starts = [0] * len(needles)
    parts: list[str] = []
    length = done = 0

    def add(part: str) -> None:
        nonlocal length
        parts.append(part)
        length += len(part)

    for number in sorted(range(len(needles)), key=lambda number: (places[number], number)):
        add(haystack.text[done : places[number]])
        done = places[number]
        if parts[-1] and not parts[-1].endswith("\n"):
            add(JOINT)
        starts[number] = length
        add(needles[number].text)
        add(JOINT)
    add(haystack.text[done:])
    return "".join(parts), starts


def _question(qid: str, task: TaskName, asked: Asked, starts: Sequence[int]) -> Question:
    spans: list[Span] = sorted(
        (starts[place.needle] + place.span[0], starts[place.needle] + place.span[1])
        for place in asked.places
    )
    return Question(
        qid=qid,
        question=asked.question,
        answers=() if asked.answer is None else (asked.answer,),
        spans=tuple(spans),
        is_impossible=asked.answer is None,
        category=task,
    )


def _source(haystack: Window, tokens: int) -> str:
    names = ", ".join(haystack.names[:_LONGEST_SOURCE])
    more = len(haystack.names) - _LONGEST_SOURCE
    names += f" and {more} more" if more > 0 else ""
    rounds = f", up to {haystack.rounds} times" if haystack.rounds > 1 else ""
    return f"generated: {tokens} tokens, facts planted in {names}{rounds}"
