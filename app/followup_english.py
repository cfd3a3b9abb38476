"""Rules for English follow-up questions.

Knows wording: parties, ordinals, dates and clause numbers that can take one another's place,
question words, pronouns. Does not know grammar beyond the first auxiliary verb.
"""

from __future__ import annotations

import re

from retrieval.folding import fold
from retrieval.stems import words
from retrieval.vocabulary import vocabulary
from retrieval.wordlists import word_list

_PARTY = (
    r"(?:the |our |a |each |either |one )?(?:buyer|seller|supplier|purchaser|customer|client|vendor"
    r"|licensor|licensee|landlord|lessor|lessee|tenant|employer|employee|contractor|subcontractor"
    r"|recipient|discloser|distributor|company|agent|principal|lender|borrower|guarantor|provider"
    r"|franchisor|franchisee|owner|consultant|manufacturer|party [ab]|other (?:party|side))\b"
)
_ORDINAL = (
    r"(?:the )?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|next"
    r"|\d{1,2}(?:st|nd|rd|th))(?: [a-z]{3,})?\b"
)
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
_DATE = rf"(?:(?:\d{{1,2}} )?{_MONTH} )?(?:19|20)\d\d\b|(?:\d{{1,2}} )?{_MONTH}\b(?! i\b)"
_CLAUSE = (
    r"(?:clause|section|article|schedule|annex|appendix|exhibit|part)s? [\da-z]+(?:\.\d+)*"
    r"(?:\([a-z0-9]+\))*"
)
_KINDS = tuple(re.compile(kind, re.IGNORECASE) for kind in (_CLAUSE, _ORDINAL, _DATE, _PARTY))

_AUX = (
    "is|are|was|were|do|does|did|can|could|may|might|must|shall|should|will|would|has|have|had|am"
)
_AUXILIARY = re.compile(rf"\b(?:{_AUX})\b", re.IGNORECASE)
_VERBAL = re.compile(rf"\b(?:{_AUX}|who|whom|when|where|which|why|how|what|whose)\b", re.IGNORECASE)
_PREPOSITION = r"for|in|on|at|of|to|by|with|under|after|before|during|from|within|as to|against"
_OPENING = re.compile(r"^(?:and|but|so|or|then|also|ok(?:ay)?|now|yes|no)\b[,\s]*", re.IGNORECASE)
_FRAGMENT = re.compile(
    rf"^(?:(?:what|how) about |(?:the )?same (?:question |thing )?(?=(?:{_PREPOSITION}) ))?"
    rf"(?:(?P<prep>{_PREPOSITION}) )?(?P<thing>[^?]{{2,80}}?)"
    r"\s*(?:then|too|as well|instead)?\s*\?*$",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"^(?:what|how) about |^(?:the )?same ", re.IGNORECASE)
_SHORT_PARTY = re.compile(
    rf"^(?:{_AUX}) (?P<thing>{_PARTY})(?: too| also| as well| either)?\s*\?*$", re.IGNORECASE
)
_BARE_WORD = re.compile(
    r"^(?P<asks>why(?: not)?|when|where|how(?: (?:much|long|often|many|soon|so|come))?"
    r"|by (?:when|whom)|(?:since|until|till) when|to whom|under (?:what|which) conditions?"
    r"|in (?:what|which) cases?)"
    r"(?: (?:is that|exactly|then))?\s*\?*$",
    re.IGNORECASE,
)  # fmt: skip
_WHAT_IS = re.compile(r"^(?:what|which)(?:'s| is| are| was| were) (?P<thing>.+)$", re.IGNORECASE)
_HOW_IS = re.compile(
    r"^how (?:long|much|high|large|big|many|often) (?:is|are) (?P<thing>.+)$", re.IGNORECASE
)
_CUT = re.compile(
    r"\s*(?:,| and (?:when|how|who|what|where) | if | when | in case )", re.IGNORECASE
)
_NOUN_PHRASE = re.compile(
    r"\b(?:the|this|our|an?|any) (?:[a-z-]+ (?:period|term|fee|fees|date|price|bond|year|payment"
    r"|right|obligation|notice|limit|cap|policy|agreement|contract|rate|tax|report|plan|deposit|services?"
    r"|goods|parts|certificate|information|property|duty|warranty|penalty)\b|[a-z-]+)",
    re.IGNORECASE,
)
_NO_ANAPHOR = re.compile(
    r"\bit (?:is |be )?(?:possible|allowed|permitted|necessary|required|mandatory|true|ok|okay"
    r"|enough|legal|forbidden|takes?|matters?|an?|the|not)\b",
    re.IGNORECASE,
)
_NEXT = (
    rf"(?:\?|$|{_AUX}|apply|applies|mean|means|happen|happens|include|cover|cost|costs|end|ends|start"
    r"|begin|expire|expires|run|work|change|exceed|also|be|been|ever|only|still|not|too|then|in|for"
    r"|after|before|by|to|under|if|when|from|cap|capped|renew|renewed|extended|paid|due)\b"
)
_PRONOUN = re.compile(
    rf"\b(?P<poss>its|their)\b(?= [a-z])|\b(?P<it>it|they|them)\b"
    rf"|\b(?P<this>this|that|these|those)\b(?=\s*{_NEXT.replace(chr(92) + '?|$|', '')}|\s*\?|\s*$)",
    re.IGNORECASE,
)
_NOUNED = re.compile(
    r"\b(?:that|this|the same|such) (?:amount|sum|fee|period|date|deadline|obligation|right|limit"
    r"|cap|rate|price|payment|term|duty|penalty)\b",
    re.IGNORECASE,
)
_CLAUSE_MEANT = re.compile(
    r"\b(?:that|this|the same|said) (?:clause|section|article|provision|paragraph)\b", re.IGNORECASE
)
_OWN_NOUN = re.compile(r"\b(?:the|an?|any|each|our|my|every|this|that) [a-z]+", re.IGNORECASE)
_TAIL_NOUN = re.compile(
    rf"\b(?:{_PREPOSITION}) (?P<noun>(?:the|an?) [\w-]+(?: [\w-]+){{0,3}})$", re.IGNORECASE
)
_MEASURED = re.compile(
    r"\b(?:payment|fee|price|deposit|rent|cost|charge|penalty|bond|salary|royalty|premium|interest"
    r"|compensation|period|term|warranty|duration|notice|cap|limit)s?$",
    re.IGNORECASE,
)
_MAX_FRAGMENT_WORDS = 8


def rewritten(question: str, before: str, clause: str | None) -> str | None:
    """`question` after the question `before`, whose answer cited `clause` first; None when no rule
    fits."""
    asked = _OPENING.sub("", question.strip())
    opened = asked != question.strip()
    if not asked:
        return None
    if bare := _BARE_WORD.match(asked):
        return _asked_on(bare["asks"], before)
    if short := _SHORT_PARTY.match(asked):
        return _in_place(short["thing"], before)
    if clause and _CLAUSE_MEANT.search(asked):
        return _capital(_CLAUSE_MEANT.sub(clause, asked, count=1))
    fragment = _FRAGMENT.match(asked)
    if fragment and _is_fragment(fragment["thing"]):
        marked = opened or bool(_ABOUT.match(asked)) or bool(fragment["prep"])
        return _with_fragment(fragment["thing"], fragment["prep"], before, marked)
    return _without_pronoun(asked, before)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bare(question: str) -> str:
    return question.strip().rstrip("?？.! ")


def _is_fragment(thing: str) -> bool:
    return not _VERBAL.search(thing) and len(thing.split()) <= _MAX_FRAGMENT_WORDS


def _asked_on(asks: str, before: str) -> str:
    """ "Why?" after "Can the buyer terminate?": "Why can the buyer terminate?"."""
    asks, stated = _capital(asks.lower()), _bare(before)
    stands = _WHAT_IS.match(stated)
    if asks.startswith("Why") and stands:
        return f"{asks}: what is the reason for {_CUT.split(stands['thing'])[0]}?"
    verb = _AUXILIARY.search(stated)
    if verb is None or (stands and not asks.startswith("Why")):
        return f"{asks}, as to “{stated}”?"
    rest = stated[verb.start() :]
    return f"{asks} {rest[:1].lower()}{rest[1:]}?"


def _in_place(thing: str, before: str) -> str | None:
    """`before` with `thing` in the place of what is of its kind; None when there is none."""
    for kind in _KINDS:
        mine = kind.search(thing)
        if mine is None:
            continue
        for theirs in kind.finditer(before):
            if kind is _KINDS[1] and not _same_noun(mine[0], theirs[0]):
                continue
            new = mine[0]
            if theirs[0].lower().startswith("the ") and not new.lower().startswith(
                ("the ", "our ", "a ", "each ", "either ", "one ", "party ")
            ):
                new = new if kind is not _KINDS[1] and kind is not _KINDS[3] else f"the {new}"
            elif not theirs[0].lower().startswith("the ") and kind is _KINDS[1]:
                new = re.sub(r"^the ", "", new, flags=re.IGNORECASE)
            if kind is _KINDS[1] and " " not in re.sub(r"^the ", "", mine[0]):
                noun = re.sub(r"^(?:the )?\S+", "", theirs[0])
                new += noun
            return _capital(before[: theirs.start()] + new + before[theirs.end() :])
    return None


def _same_noun(mine: str, theirs: str) -> bool:
    """Whether two ordinals count the same thing ("second year", "first year", "the second")."""
    one, other = (re.sub(r"^the ", "", text.lower()).split()[1:] for text in (mine, theirs))
    return not one or one == other


def _with_fragment(thing: str, prep: str | None, before: str, marked: bool) -> str | None:
    if (found := _in_place(thing, before)) is not None:
        return found
    if not marked:
        return None
    stated = _bare(before)
    if (found := _sharing_a_word(thing, stated)) is not None:
        return found + "?"
    if prep:
        tail = list(re.finditer(rf"\b{prep} ", stated, re.IGNORECASE))
        if tail and _is_fragment(stated[tail[-1].end() :]):
            return f"{stated[: tail[-1].end()]}{thing}?"
        return f"{stated} {prep.lower()} {thing}?"
    if any(kind.search(thing) for kind in _KINDS):
        return f"{stated} for {thing}?"
    return _with_thing(thing, stated)


def _with_thing(thing: str, stated: str) -> str | None:
    """`stated` asked of another thing; None when that is a new matter."""
    topic = _is_topic(thing)
    if re.match(r"(?:the|an?) ", thing, re.IGNORECASE):
        what, how = _WHAT_IS.match(stated), _HOW_IS.match(stated)
        for asks, fits in ((what, True), (how, not topic or bool(_MEASURED.search(thing)))):
            if asks and fits and _is_simple(asks["thing"]):
                return f"{stated[: asks.start('thing')]}{thing}?"
        tail_noun = _TAIL_NOUN.search(stated)
        if tail_noun and not topic:
            return f"{stated[: tail_noun.start('noun')]}{thing}?"
    return None if topic else f"{stated} for {thing}?"


def _is_simple(noun: str) -> bool:
    return bool(re.fullmatch(r"(?:the|an?) [\w-]+(?: [\w-]+){0,2}", noun, re.IGNORECASE))


def _sharing_a_word(thing: str, stated: str) -> str | None:
    """ "late payment" takes the place of "late delivery", "a minor fault" of "a major fault"."""
    plain = re.sub(r"^(?:the|an?|any) ", "", thing, flags=re.IGNORECASE).split()
    if len(plain) < 2:
        return None
    said = list(re.finditer(r"[\w'-]+", stated))
    for at, word in enumerate(said):
        lower = word[0].lower()
        if lower in word_list("english_stop"):
            continue
        if lower == plain[0].lower() and at + len(plain) <= len(said):
            start, end = word.start(), said[at + len(plain) - 1].end()
        elif lower == plain[-1].lower() and at + 1 >= len(plain):
            start, end = said[at + 1 - len(plain)].start(), word.end()
        else:
            continue
        return stated[:start] + " ".join(plain) + stated[end:]
    return None


def _is_topic(thing: str) -> bool:
    """Whether a fragment is a legal matter of its own ("governing law"), and so a new question."""
    folded = fold(thing)
    return any(vocabulary().in_questions.mentions(folded, words(folded)))


def _without_pronoun(asked: str, before: str) -> str | None:
    if _NO_ANAPHOR.search(asked) or re.search(
        r"\b(?:is|does|will) it (?:possible|take|matter)", asked
    ):
        return None
    nouned = _NOUNED.search(asked)
    found = nouned or _PRONOUN.search(asked)
    if found is None:
        return None
    ahead = asked[: found.start()]
    if _OWN_NOUN.search(ahead) or _PARTY_WORD.search(ahead):
        return None
    person = found[0].lower() in ("they", "them", "their")
    topic = _topic(_bare(before), person=person)
    if topic is None:
        return None
    if not nouned and found["poss"]:
        topic += "'" if topic.endswith("s") else "'s"
    return _capital(ahead + topic + asked[found.end() :])


_PARTY_WORD = re.compile(rf"\b{_PARTY}", re.IGNORECASE)


def _topic(stated: str, *, person: bool) -> str | None:
    """What a question is about: the thing it asks for, or its first noun."""
    party = _PARTY_WORD.search(stated)
    if person and party:
        return party[0]
    asks = _WHAT_IS.match(stated) or _HOW_IS.match(stated)
    if asks:
        return str(_CUT.split(asks["thing"])[0])
    phrases = [match[0] for match in _NOUN_PHRASE.finditer(stated)]
    things = [phrase for phrase in phrases if not _PARTY_WORD.match(phrase)]
    if things:
        return things[0]
    return party[0] if party else None
