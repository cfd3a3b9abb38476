"""Whether a court's account of a case answers a question about it.

Such accounts (经审理查明…) tell who did what and when in a few long sentences, so nearly every
word of a question stands somewhere in them; what tells are the words that do not, whether the kind
of fact asked for stands beside the question's words, and what people ask that an account of the
facts seldom says: verdicts, claims, motives. The weights were fitted by `scripts.fit_cases`, those
of wordings lie in `case_cues.toml`. It knows words, not what happened.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import rjieba

from retrieval.case_matters import Matter, matters_asked
from retrieval.folding import fold, fold_in_place
from retrieval.sentences import Span
from retrieval.tokens import HAN_STOP
from retrieval.wordlists import word_list

_FILE = Path(__file__).with_name("case_cues.toml")
FEATURES = ("absent", "verb_absent", "name_absent", "matter_absent", "beside", "around")
_ROLES = re.compile("原告|被告|上诉人|被害人|公诉机关|申请人|第三人")
_FINDINGS = re.compile(
    "(?:审理|审查|本案|依法)[^。]{0,12}(?:查明|认定)|检察院指控|公诉机关指控"
    "|本院[^。]{0,30}(?:认定|确认)[^。]{0,12}事实|经审查,原告"
)
_COURT = re.compile("本院|法院|审理|诉至|判决|仲裁委员会")
_OPENING = 300
_LONGEST = 3_000
"""Characters of an account; the weights know those of up to 1,000, and a whole judgment also holds
what an account of the facts leaves out."""
_CUT = re.compile(
    r"[,，;；。:：\n]"
    r"|(?<=[^,，;；。:：\n(（年至到于从在自])(?=(?:19|20)\d\d年)"
)
_NAME = re.compile(r"[\u4e00-\u9fff]?(?:某\d?|x*\d+)(?![\d年月日元%.])|x{2,}\d*")
_MASKED = re.compile(r"[\u4e00-\u9fff]?x*\d+|x{2,}\d*|某[某甲乙]*|[^\u4e00-\u9fff]")
_MARK = re.compile(r"[?？。,，\"“”《》、\s]")
_ASKING = re.compile(
    "什么时候|什么时间|什么地方|为什么|多少钱|是多少|多少|什么|哪[里些个天年家位方种]|何[时处地人种]"
    "|如何|怎么样?|怎样|为何|多[久长大]|是否|有没有|有无|几|谁|吗|呢|是不是|请问|本案中?|该案件?|此案件?"
    "|案件中?"
)
_YES_NO = re.compile("是否|吗|有没有|有无|能否|可否|是不是|会不会")
_WORDS = re.compile("[\u4e00-\u9fff0-9a-z]")
_TAG_WEIGHT = {
    "a": 0.8, "d": 0.25, "r": 0.1, "c": 0.1, "p": 0.1, "u": 0.05, "m": 0.4, "q": 0.3, "t": 0.5,
    "f": 0.3, "y": 0.05,
}  # fmt: skip
_TELLING = 0.8
_LONGEST_CUE = 3


def is_case(text: str) -> bool:
    """Whether a text reads as a court's account of a case: short, and it opens with findings or
    names the parties by their roles and speaks of the court."""
    if len(text) > _LONGEST:
        return False
    opening = fold_in_place(text[:_OPENING])
    if _FINDINGS.search(opening):
        return True
    return bool(_COURT.search(text)) and len(_ROLES.findall(opening)) >= 2


@lru_cache(maxsize=1)
def _fitted() -> tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]:
    """(biases by `kind`, weights of the features, weights of the wordings)."""
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return data["bias"], data["features"], data["wordings"]


def kind(question: str) -> str:
    """Whether a question is one of yes or no, whose words nearly always stand in the account: each
    kind has a threshold of its own."""
    return "yes_no" if _YES_NO.search(fold(question)) else "other"


def wordings(question: str) -> set[str]:
    """Runs of one to three characters of a question, without names and figures; ^ is its start."""
    runs = re.split("#+", _MASKED.sub("#", fold(question)))
    first = runs[0] if runs else ""
    found = {
        run[at : at + size]
        for run in runs
        for size in range(1, _LONGEST_CUE + 1)
        for at in range(len(run) - size + 1)
    }
    return found | {f"^{first[:size]}" for size in range(1, _LONGEST_CUE) if first[:size]}


def features(question: str, text: str) -> dict[str, float]:
    """What the account lacks of the question and how near the kind of fact stands to its words.

    `absent`: the most telling word that stands nowhere; `verb_absent`: the same of verbs;
    `name_absent`: a name that stands nowhere; `matter_absent`: a matter asked for that the account
    never speaks of; `beside` and `around`: share of the question's words in one, in four clauses
    that hold what is asked for.
    """
    asked, body = fold(question), fold_in_place(text)
    words = _content(asked)
    matters = matters_asked(asked)
    missing = [(weight * (1 - _cover(word, body)), tag) for word, tag, weight in words]
    names = [match.group() for match in _NAME.finditer(asked)]
    pieces = [body[start:end] for start, end in _clauses(body)]
    return {
        "absent": max((gap for gap, _ in missing), default=0.0),
        "verb_absent": max((gap for gap, tag in missing if tag[:1] == "v"), default=0.0),
        "name_absent": float(any(name not in body for name in names)),
        "matter_absent": float(any(not matter.marks.search(body) for matter in matters)),
        "beside": _beside(words, matters, pieces, 1),
        "around": _beside(words, matters, pieces, 4),
    }


def odds(question: str, text: str) -> float:
    """Log odds that the account of a case answers the question."""
    biases, weights, cues = _fitted()
    found = features(question, text)
    raw = biases[kind(question)] + sum(weights[name] * found[name] for name in FEATURES)
    return raw + sum(cues.get(wording, 0.0) for wording in wordings(question))


def _content(folded: str) -> list[tuple[str, str, float]]:
    """(word, its tag, how telling it is) for the words of a question, without words of asking."""
    found = []
    for part in _ASKING.sub(" ", _MARK.sub(" ", folded)).split():
        for word, tag in rjieba.tag(part):
            asking = word in word_list("asking_chinese") or word in HAN_STOP
            if not asking and _WORDS.search(word):
                weight = 1.0 if tag == "vn" else _TAG_WEIGHT.get(tag[:1], 1.0)
                found.append((word, tag, weight))
    return found


def _clauses(folded: str) -> list[Span]:
    """The text cut at commas and stops, and before dates, where accounts leave out the stop."""
    spans, at = [], 0
    for match in _CUT.finditer(folded):
        if match.end() > at:
            spans.append((at, match.end()))
            at = match.end()
    return [*spans, (at, len(folded))] if at < len(folded) else spans


def _cover(word: str, text: str) -> float:
    """How far a text holds a word: by its character pairs where not whole, in [0, 1]."""
    if word in text:
        return 1.0
    if len(word) == 1:
        return 0.0
    if len(word) == 2:
        return 0.15 * sum(character in text for character in word)
    pairs = [word[at : at + 2] for at in range(len(word) - 1)]
    return 0.6 * sum(pair in text for pair in pairs) / len(pairs)


def _beside(
    words: Sequence[tuple[str, str, float]],
    matters: Sequence[Matter],
    pieces: Sequence[str],
    size: int,
) -> float:
    """The greatest share of the question's words in `size` clauses in a row that hold a matter
    asked for (any clauses where none is recognised)."""
    total = sum(weight for _, _, weight in words)
    if not total:
        return 0.0
    known = [any(m.marks.search(piece) for m in matters) or not matters for piece in pieces]
    covers = [[_cover(word, piece) for word, _, _ in words] for piece in pieces]
    best = 0.0
    for at in range(len(pieces)):
        if any(known[at : at + size]):
            rows = covers[at : at + size]
            held = sum(
                max(c) * w for c, (_, _, w) in zip(zip(*rows, strict=True), words, strict=True)
            )
            best = max(best, held / total)
    return best
