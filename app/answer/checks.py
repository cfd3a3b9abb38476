"""Looks up what an answer says in the spans it cites.

Every quote, figure, date, clause number and name of a text becomes a Check; a sentence that reuses
a span must not turn it around (see `reuse`). A figure that was computed is judged by the operands
that are shown with it. A check says whether something stands in the cited
text, not whether the answer is right: words that carry no figure and reuse no span are only tested
for how many of them are foreign to the span.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.answer import quotes
from app.answer.clause_numbers import find_clause_numbers
from app.answer.equations import find_equations
from app.answer.figures import Figure
from app.answer.items import Items, find_items
from app.answer.names import stands_in as name_stands_in
from app.answer.reuse import turned
from app.types import Check, CheckKind, Citation
from retrieval.folding import fold
from retrieval.opposites import places, turned_roots

if TYPE_CHECKING:
    from app.documents import LoadedDocument


# NFKC would make letters of them, welded to the name before.
_MARKS = re.compile("[™®©℠]")


def check_quotes(
    lines: Sequence[str],
    citations: Sequence[Citation],
    documents: Sequence[LoadedDocument],
) -> tuple[Check, ...]:
    """One check a citation: its quote is the document's text at its offsets, and the line of the
    answer shows it. `lines` are the quote lines, joined by a line break in the answer."""
    texts = {document.record.id: document.text for document in documents}
    checks: list[Check] = []
    offset = 0
    for line, citation in zip(lines, citations, strict=True):
        source = texts[citation.document_id][citation.start_char : citation.end_char]
        checks.append(check_quote(line, citation, source, offset=offset))
        offset += len(line) + 1
    return tuple(checks)


def check_quote(line: str, citation: Citation, source: str, *, offset: int = 0) -> Check:
    """Whether the quote is the document's text at its offsets (`source`), letter by letter, and
    the line of the answer shows it. `offset` is the place of the line in the answer."""
    start = line.find(citation.quote)
    ok = citation.quote == source and start >= 0
    place = offset + max(0, start)
    note = "" if ok else "the quote is not the document's text"
    return Check("quote", citation.quote, ok, place, place + len(citation.quote), note)


def check_text(
    text: str,
    spans: Sequence[str],
    *,
    labels: Sequence[str] = (),
    offset: int = 0,
) -> tuple[Check, ...]:
    """Checks of a text against the cited spans, in order of their place; none when it says nothing
    that can be looked up.

    `labels` are clause numbers of the cited spans ("12.3", "第十二条"), which the text may name.
    `offset` is the place of the text in the answer.
    """
    items = find_items(text)
    sources = [find_items(span) for span in spans]
    checks = [
        *_quotes(text, spans),
        *_dates(items, sources),
        *_clauses(items, sources, labels),
        *_figures(items, sources, spans),
        *_names(items, [fold(_MARKS.sub(" ", span)).replace('"', "'") for span in spans]),
    ]
    computed = _computed(text, items, checks, spans)
    results = [(check.start, check.end) for check in computed]
    checks = [*(check for check in checks if (check.start, check.end) not in results), *computed]
    for turn in turned(text, spans):
        if any(turn.start < end and start < turn.end for start, end in results):
            # What was computed stands in no span; it is judged by its operands.
            continue
        kind: CheckKind = turn.kind  # type: ignore[assignment]
        checks = [c for c in checks if not (c.ok and c.kind == kind and c.start == turn.start)]
        checks.append(
            Check(kind, text[turn.start : turn.end], False, turn.start, turn.end, turn.note)
        )
    turns = [(check.start, check.end) for check in checks if check.kind == "negation"]
    checks += [
        check
        for check in _prefixes(text, spans)
        if not any(start < check.end and check.start < end for start, end in turns)
    ]
    return tuple(
        replace(check, start=check.start + offset, end=check.end + offset)
        for check in sorted(checks, key=lambda check: (check.start, check.end))
    )


def _computed(
    text: str, items: Items, checks: Sequence[Check], spans: Sequence[str]
) -> list[Check]:
    """Results that are shown with their operands and that the cited text doesn't have, or that an
    equals sign claims: each operand must stand in the cited text, and the result must follow."""
    missing = {(check.start, check.end) for check in checks if not check.ok}
    found = []
    for equation in find_equations(text, items):
        whole = text[equation.operands[0].start : equation.end]
        quoted = any(quotes.stands_in(whole, span) for span in spans)
        if (equation.start, equation.end) not in missing and (quoted or not equation.exact):
            # It stands in the cited text: "pays 70%, in total 166 m²" computes nothing.
            continue
        stand = all((item.start, item.end) not in missing for item in equation.operands)
        note = "" if equation.right else "the result does not follow from its operands"
        note = note if stand else "an operand is not in the cited text"
        place = equation.start, equation.end
        operands = tuple(item.text for item in equation.operands)
        ok = stand and equation.right
        found.append(Check("computed", text[slice(*place)], ok, *place, note, operands))
    return found


def _prefixes(text: str, spans: Sequence[str]) -> list[Check]:
    """Words that the cited text has only behind a prefix of denial, or only without it: a short
    sentence shares too few words with a span to be compared with it word by word."""
    note = "the cited text says the opposite of this word"
    return [
        Check("negation", text[start:end], False, start, end, note)
        for root in sorted(turned_roots(text, "\n".join(spans)))
        for start, end in places(text, root)
    ]


def foreign_words(text: str, spans: Sequence[str]) -> float:
    """Share of the content words of a text that stand in no span.

    English words are compared by their first four letters, Chinese by pairs of characters.
    """
    known = set(_content(" \n ".join(spans)))
    mine = _content(text)
    return sum(word not in known for word in mine) / len(mine) if mine else 0.0


def _quotes(text: str, spans: Sequence[str]) -> list[Check]:
    checks = []
    for quote in quotes.find_quotes(text):
        ok = any(quotes.stands_in(quote.words, span) for span in spans)
        note = "" if ok else "these words are not in the cited text"
        checks.append(Check("quote", quote.words, ok, quote.start, quote.end, note))
    return checks


def _dates(items: Items, sources: Sequence[Items]) -> list[Check]:
    known = [date for source in sources for date in source.dates]
    checks = []
    for date in items.dates:
        ok = any(date.within(other) for other in known)
        note = "" if ok else _absent("date", date.ambiguous)
        checks.append(Check("date", date.text, ok, date.start, date.end, note))
    return checks


def _absent(what: str, ambiguous: bool) -> str:
    reason = " (day and month can't be told apart)" if ambiguous else ""
    return f"this {what} is not in the cited text{reason}"


def _clauses(items: Items, sources: Sequence[Items], labels: Sequence[str]) -> list[Check]:
    known = {clause.key for source in sources for clause in source.clauses}
    known |= {number.key for label in labels for number in find_clause_numbers(label, bare=True)}
    checks = []
    for clause in items.clauses:
        ok = clause.known_in(known)
        note = "" if ok else "the cited text neither is this clause nor names it"
        checks.append(Check("clause", clause.text, ok, clause.start, clause.end, note))
    return checks


def _figures(items: Items, sources: Sequence[Items], spans: Sequence[str]) -> list[Check]:
    known = [figure for source in sources for figure in source.figures]
    years = {date.year for source in sources for date in source.dates}
    checks = []
    for figure in items.figures:
        ok = any(_same(figure, other) for other in known)
        if not ok and not figure.unit and figure.value is not None:
            # A year without its month, from a date of the cited text.
            ok = figure.value in years
        note = "" if ok else _why(figure, known)
        checks.append(Check("number", figure.text, ok, figure.start, figure.end, note))
    return checks


def _same(mine: Figure, theirs: Figure) -> bool:
    """The same value, and the same unit where one is given. A share keeps its sign: 5 is not 5%."""
    if mine.value is None or theirs.value is None:
        return mine.text == theirs.text
    if not mine.unit and theirs.unit not in ("", "%"):
        return mine.value == theirs.number
    return mine.value == theirs.value and mine.unit == theirs.unit


def _why(figure: Figure, known: Sequence[Figure]) -> str:
    units = {other.unit for other in known if other.value == figure.value}
    if units:
        return f"the cited text has this figure with another unit: {', '.join(sorted(units))}"
    return "this figure is not in the cited text"


def _names(items: Items, sources: list[str]) -> list[Check]:
    checks = []
    for name in items.names:
        ok = name_stands_in(name.text, sources)
        note = "" if ok else "this name is not in the cited text"
        checks.append(Check("name", name.text, ok, name.start, name.end, note))
    return checks


_FUNCTION = re.compile(
    "the|and|for|that|this|with|from|are|was|were|will|shall|has|have|had|been|its|their|they|them|"
    "which|who|whom|whose|any|all|each|such|other|than|then|there|here|under|upon|into|onto|about|"
    "also|does|did|not|but|may|can|must|would|should|could|answer|question|contract|agreement|"
    "according|states|stated|says|means"
)


def _content(text: str) -> list[str]:
    """Content words; figures, dates and clause numbers are left to their own checks."""
    for start, end, _, _ in find_items(text).keyed():
        text = text[:start] + " " * (end - start) + text[end:]
    folded = fold(text)
    words = [w[:4] for w in re.findall(r"[a-z]{3,}", folded) if not _FUNCTION.fullmatch(w)]
    for run in re.findall("[\u3400-\u9fff]+", folded):
        words.extend(run[i : i + 2] for i in range(len(run) - 1))
    return words
