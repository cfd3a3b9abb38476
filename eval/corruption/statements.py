"""Makes trials of gold answers: what an answer says of a gold span, true or with one thing changed.

The cited span is the sentence (or sentences) of the document around a gold span. In half of the
trials its value is first written in another form, so that forms that are rare in one data set are
tried on its sentences. Further gold sentences of the same document are cited beside it, as an
answer with several quotes does.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from eval.corruption.altering import another, forms, negated, same
from eval.corruption.ellipsis import left_out
from eval.corruption.places import find_places
from eval.corruption.rewording import clause_around, quoted, reworded, short
from eval.corruption.types import KINDS, Form, Kind, Place, Trial
from eval.metrics import plain
from eval.types import EvalDocument
from retrieval.sentences import split
from retrieval.types import Language

LONGEST = 900
"""Characters of a cited span; longer ones are left out (a quote is a sentence or short clause)."""
_WINDOW = 1_500
_TRIES = 400


@dataclass(frozen=True, slots=True)
class Gold:
    """A cited span with the values in it. `document` tells which gold spans stand together."""

    document: str
    language: Language
    text: str
    places: tuple[Place, ...]


def golds(documents: Iterable[EvalDocument], *, bare: bool = False) -> Iterator[Gold]:
    """The sentences around every gold span, each once; with `bare` the gold spans as they are,
    which may be a few words."""
    for document in documents:
        seen: set[str] = set()
        for question in document.questions:
            for start, end in question.spans:
                text = document.text[start:end].strip()
                text = text if bare else _sentences(document.text, start, end)
                if 1 < len(text) <= LONGEST and text not in seen:
                    seen.add(text)
                    places = find_places(text, document.lang)
                    yield Gold(document.doc_id, document.lang, text, places)


def _sentences(text: str, start: int, end: int) -> str:
    low, high = max(0, start - _WINDOW), min(len(text), end + _WINDOW)
    spans = [span for span in split(text, low, high) if span[0] < end and start < span[1]]
    if not spans:
        return ""
    found = text[spans[0][0] : spans[-1][1]].strip()
    return found if len(found) <= LONGEST else ""


class Maker:
    """Draws trials from golds: kinds and languages in turn, the rest by chance."""

    def __init__(self, sources: Sequence[Gold], seed: int) -> None:
        self._chance = random.Random(seed)
        self._holding: dict[tuple[Language, Kind], list[Gold]] = defaultdict(list)
        self._together: dict[str, list[Gold]] = defaultdict(list)
        for gold in sources:
            self._together[gold.document].append(gold)
            for kind in KINDS:
                if kind == "negation" or self._of_kind(gold, kind):
                    self._holding[gold.language, kind].append(gold)

    def trials(self, count: int, *, altered: bool) -> list[Trial]:
        """`count` trials, spread over all kinds that the sources hold, in each language."""
        turns = [
            (language, kind)
            for kind in KINDS
            for language in ("en", "zh")
            if self._holding[language, kind]
        ]
        made: list[Trial] = []
        while len(made) < count:
            language, kind = turns[len(made) % len(turns)]
            made.append(self._trial(language, kind, altered=altered))  # type: ignore[arg-type]
        return made

    def _trial(self, language: Language, kind: Kind, *, altered: bool) -> Trial:
        for _ in range(_TRIES):
            gold = self._chance.choice(self._holding[language, kind])
            form: Form = self._chance.choice(("quote", "sentence", "sentence", "short"))
            if kind == "negation":
                trial = self._negation(gold, "quote" if form == "quote" else "sentence", altered)
            else:
                trial = self._value(gold, kind, form, altered)
            if trial is not None:
                return trial
        raise ValueError(f"no answer about a {kind} could be made of the {language} texts")

    @staticmethod
    def _of_kind(gold: Gold, kind: Kind) -> list[Place]:
        """Places whose `kind` can be changed; a duration has a unit too. Words in quotation marks
        are left alone: there every change is one of the quote as well."""
        return [
            replace(place, kind=kind)
            for place in gold.places
            if place.kind in ((kind, "duration") if kind == "unit" else (kind,))
            and not quoted(gold.text, place.start)
        ]

    def _value(self, gold: Gold, kind: Kind, form: Form, altered: bool) -> Trial | None:
        chance, language = self._chance, gold.language
        place = chance.choice(self._of_kind(gold, kind))
        span = gold.text
        if chance.random() < 0.5:
            written = span[place.start : place.end]
            other = same(place, language, written, chance)
            if other is not None and not other[-1].isdigit():
                span = span[: place.start] + other + span[place.end :]
                place = replace(place, end=place.start + len(other))
        before = span[place.start : place.end]
        changed = another(place, language, chance)
        if altered:
            after = chance.choice(forms(changed, language, before))
        elif form == "quote":
            after = before
        else:
            after = same(place, language, before, chance) or before
        spans = (span, *self._beside(gold))
        glued = span[place.end : place.end + 1] in "0123456789.．０" and after[-1].isdigit()
        if glued and place.end < len(span):
            return None
        if altered and (after == before or (form == "short" and _says(changed, language, spans))):
            return None
        answer = self._answer(span, place, after, form, language)
        return Trial(kind, language, form, answer, spans, altered, before, after)

    def _answer(self, span: str, place: Place, after: str, form: Form, language: Language) -> str:
        if form == "short":
            return short(after, place.kind, language, self._chance)
        changed = span[: place.start] + after + span[place.end :]
        end = place.start + len(after)
        if form == "quote":
            return changed
        if self._chance.random() < 0.5:
            changed = clause_around(changed, place.start, end, language)
        return reworded(changed, language, self._chance, keep=after)

    def _negation(self, gold: Gold, form: Form, altered: bool) -> Trial | None:
        chance, language = self._chance, gold.language
        text, before, after = gold.text, "", ""
        if form == "quote" and chance.random() < 0.5:
            cut = left_out(text, language, chance, lie=altered)
            if cut is None:
                return None
            answer, before = cut
            after = "…"
        else:
            if altered:
                change = negated(text, language, chance)
                if change is None:
                    return None
                text, before, after = change
            answer = text if form == "quote" else reworded(text, language, chance, keep=after)
        spans = (gold.text, *self._beside(gold))
        return Trial("negation", language, form, answer, spans, altered, before, after)

    def _beside(self, gold: Gold) -> list[str]:
        others = [other.text for other in self._together[gold.document] if other is not gold]
        return self._chance.sample(others, min(len(others), self._chance.choice((0, 1, 2))))


def _says(changed: Place, language: Language, spans: Sequence[str]) -> bool:
    """Whether a short answer with the changed value may be true of another place of the spans."""
    written = forms(changed, language, "")
    if any(form in span for form in written for span in spans):
        return True
    if changed.kind in ("currency", "unit"):
        return False
    values = frozenset().union(*(plain.values(span) for span in spans))
    return all(number.readings & values for number in plain.numbers(written[0]))
