"""Whether what was found is another sum than the one asked for: then it is no answer.

A contract without a cancellation fee has a service fee, and the two share a word and a figure. So
the sum must be spoken of: in the document at all; for kinds that contracts mix up with others, by
the figure itself, or in the heading above it. Words are looked for, no meaning: a sum that is told
without one of its words is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from difflib import get_close_matches

import rjieba

from retrieval import cases
from retrieval.asked import CURRENCIES
from retrieval.clauses import around
from retrieval.folding import fold
from retrieval.index import SearchIndex
from retrieval.kept import kept_by_identity
from retrieval.query import Query
from retrieval.stems import words
from retrieval.sum_kin import AskedSum, sum_asked
from retrieval.types import Sentence
from retrieval.wordlists import word_list

_CLAUSE_CHARS = 3_000
"""Of a clause that goes on, so much is looked into."""
_LIKE_CHARS, _MISSPELT, _FORMS = 6, 0.85, 3
"""Two words are forms of one that begin alike in so many characters; likeness from which on a word
of nearly the same length is a misspelt one, and by how many characters it must not differ."""
_MONEY = rf"(?:(?:[€£$¥]|\b(?:usd|eur|gbp|rmb|cny|hkd|{CURRENCIES})\b)\s?\d[\d,.]*)"
_SUM = re.compile(_MONEY)
_AMOUNT_WORDING = (
    rf"{_MONEY}|\d\s?(?:%|percent|per\s+cent|[€£$]|(?:euros?|dollars?|pounds?|usd|eur|gbp)\b)|%|分之"
    r"|\d\s?[百千万]?元|元|￥|[\d一二三两]个?月(?:的)?(?:租金|工资|费)"
    r"|\b(?:month|week|day|year|quarter)s?'s?\s+(?:rent|fee|salary|pay|wage|charge)"
    r"|\btimes\s+the\b|\bhalf\s+(?:of|the)\b|\b(?:free|no)\s+(?:of\s+)?(?:charge|cost|fee)\b"
    r"|\b(?:hundred|thousand|percent|percentage\s+points?)\b"
)
_AMOUNT = re.compile(_AMOUNT_WORDING)
"""A sum of money or a share in a folded text, rather too often found."""
_FIGURE = re.compile(
    rf"{_AMOUNT_WORDING}|\brate\b|\[\s?\*|_{{2}}|\bborne\s+by\b|\bexpense\b|\bpay\s+for\b"
    r"|\bas\s+quoted\b|[承负]担"
)
"""The same, or its blank, or who bears it."""
_PUT_TO = re.compile(
    r"\b(?P<other>[a-z-]+)\s+(?:fees?|charges?|costs?|deposit|bond|bonus|premium|payment|price)\s+"
    rf"(?:of|is|are|amounts?\s+to|comes\s+to|shall\s+be|:)\s+{_MONEY}"
)
_CHARGED = re.compile(
    r"interest|\bfees?\b|\bcharge|penalt|\badded|%|\bpay(?:s|able)?\b|\bow(?:es?|ed)\b"
)
_NEARER = frozenset(("early", "security", "monthly", "annual", "yearly"))
"""Words before the name of a sum that contracts often leave out."""
_SENTENCE = re.compile(r"(?<=[.;:])\s+(?=[^\d\s])|(?<=[。；])\s*|\n\s*\n")
_POINTS_BACK = re.compile(r"(?:it|this|that|such|which|the\s+same)\b")


@kept_by_identity(4)
def _folded(text: str) -> str:
    return fold(text)


def _stems(folded: str) -> frozenset[str]:
    return frozenset(word.stem for word in words(folded))


@kept_by_identity(4)
def _document_stems(text: str) -> frozenset[str]:
    return _stems(_folded(text))


def absent_sum(index: SearchIndex, query: Query, sentences: Sequence[Sentence]) -> str:
    """The name of the sum asked for, where the document never speaks of it, or where the first of
    the sentences tells another one; else empty."""
    asked = _asked_of(index, query)
    if asked is None or not sentences:
        return ""
    if not _speaks_of(asked, _folded(index.text), lambda: _document_stems(index.text)):
        return asked.name
    return "" if _tells(index, asked, sentences[0]) else asked.name


def telling_first(
    index: SearchIndex, query: Query, ranked: Sequence[Sentence]
) -> tuple[Sentence, ...]:
    """The ranked sentences, before them the first that tells the sum asked for by a figure, where
    the first one tells another."""
    asked = _asked_of(index, query)
    if asked is None or asked.kin is None or not asked.kin.close or not ranked:
        return tuple(ranked)
    if _tells(index, asked, ranked[0]):
        return tuple(ranked)
    for place, one in enumerate(ranked):
        said = fold(index.text[one.start : one.end])
        if _states(asked, said, _AMOUNT) or (_is_named(asked, said) and _FIGURE.search(said)):
            likely = None if one.likely is None else max(one.likely, ranked[0].likely or 0.0)
            moved = replace(one, score=ranked[0].score + 1e-6, likely=likely)
            return (moved, *ranked[:place], *ranked[place + 1 :])
    return tuple(ranked)


def is_told(index: SearchIndex, query: Query, sentences: Sequence[Sentence]) -> bool:
    """Whether the first of the sentences tells a sum of a kind that has hardly another wording."""
    asked = _asked_of(index, query)
    if asked is None or asked.kin is None or not asked.kin.known or not sentences:
        return False
    first = sentences[0]
    return _states(asked, fold(index.text[first.start : first.end]), _AMOUNT, charged=True)


def _asked_of(index: SearchIndex, query: Query) -> AskedSum | None:
    """The sum that is asked of a contract; None for laws and courts' accounts, and for a question
    in another language than the document's."""
    asked = sum_asked(query.text)
    if asked is None or query.clauses or query.language != index.language:
        return None
    if index.articles is not None or (asked.chinese and cases.is_case(index.text)):
        return None
    return asked


def _tells(index: SearchIndex, asked: AskedSum, first: Sentence) -> bool:
    """Whether a sentence may tell the sum asked for, by its own words or by what stands above."""
    text = index.text
    said = fold(text[first.start : first.end])
    above = fold(_above(index, first))
    if asked.kin is not None and asked.kin.close:
        if _is_named(asked, said):
            return True
        headed = asked.kin.said.search(above) and not asked.kin.other.search(f"{above}\n{said}")
        return bool(headed) or _states(asked, said)
    clause = around(index.clauses, first.start)
    start, end = (first.start, first.end) if clause is None else (clause.start, clause.end)
    span = text[min(start, first.start) : max(first.end, end)][:_CLAUSE_CHARS]
    near = f"{above}\n{fold(span)}"
    return _speaks_of(asked, near, lambda: _stems(near)) or not _is_of_others(said)


def _is_named(asked: AskedSum, said: str) -> bool:
    """Whether a folded text has the very name of the sum, with a figure or without."""
    if asked.chinese:
        return asked.name in said
    first, *rest = asked.name.split()
    told = rest if first in _NEARER and len(rest) > 1 else [first, *rest]
    return bool(re.search(r"\b" + r"[\s-]+".join(map(re.escape, told)), said))


def _above(index: SearchIndex, first: Sentence) -> str:
    """The headings above a sentence, and the one it begins with."""
    titles = [index.clauses[place].title for place in index.titles.path_at(first.start)]
    return "\n".join((first.chunk.heading, *titles))


def _states(
    asked: AskedSum, said: str, figure: re.Pattern[str] = _FIGURE, *, charged: bool = False
) -> bool:
    """Whether a folded text puts a figure beside words of the sum: in one sentence, in the one
    after them, or before one that points back. `charged`: the sentence itself must have both and
    say that something is charged."""
    kin = asked.kin
    if kin is None:
        return False
    parts = [part for part in _SENTENCE.split(said) if part]

    def speaks(part: str) -> bool:
        return kin.said.search(kin.other.sub(" ", part)) is not None

    for place, part in enumerate(parts):
        if not figure.search(part) or (charged and not _CHARGED.search(part)):
            continue
        before = parts[place - 1] if place else ""
        behind = parts[place + 1] if place + 1 < len(parts) else ""
        led = not (charged or kin.other.search(part) or _FIGURE.search(before))
        if speaks(part) or (led and speaks(before)):
            return True
        if not charged and _POINTS_BACK.match(behind) and speaks(behind):
            return True
    return False


def _is_of_others(said: str) -> bool:
    """Whether each figure of a folded English sentence is put to a sum of some other name."""
    named = [match["other"] for match in _PUT_TO.finditer(said)]
    plain = word_list("sums_english") | word_list("periods_english") | word_list("english_stop")
    others = [one for one in named if one not in plain]
    return 0 < len(_SUM.findall(said)) == len(others)


def _speaks_of(asked: AskedSum, folded: str, stems: Callable[[], Set[str]]) -> bool:
    """Whether a folded text, whose words have these stems, has a word of the sum."""
    if asked.kin is not None and asked.kin.said.search(folded):
        return True
    if asked.chinese:
        core = asked.telling[0]
        pieces = [piece for piece in rjieba.cut(core) if len(piece) > 1]
        # 水电费 stands for 水费、电费 too.
        spread = "[^,，。;；\n]{0,2}?".join(map(re.escape, core))
        return bool(re.search(spread, folded)) or any(piece in folded for piece in pieces)
    known = stems()
    return any(
        _has_like(known, wanted) or _stands_joined(wanted, folded) for wanted in asked.telling
    )


def _has_like(known: Set[str], wanted: str) -> bool:
    """Whether a stem is known, in another form ("member" for "membership") or misspelt too."""
    if wanted in known:
        return True
    likely = [one for one in known if one[0] == wanted[0] and abs(len(one) - len(wanted)) < _FORMS]
    begin = wanted[:_LIKE_CHARS]
    return (len(begin) == _LIKE_CHARS and any(one.startswith(begin) for one in known)) or bool(
        get_close_matches(wanted, likely, 1, _MISSPELT)
    )


def _stands_joined(wanted: str, folded: str) -> bool:
    """Whether a long word stands with a hyphen or a blank in it ("check-out" for "checkout")."""
    if len(wanted) < _LIKE_CHARS:
        return False
    return wanted in re.sub(r"[\s-]+", "", folded)
