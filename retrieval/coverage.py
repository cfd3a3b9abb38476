"""How much of a question's content stands in a text, weighted by how telling each word is.

Knows the terms of the text, not its meaning: "shall pay" and "shall not pay" cover the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from retrieval.query import Unit

SAME_IDEA = 0.85
"""What a Chinese word counts in a quote where another wording of its idea stands: 投资总额 for
注册资本."""


def unit_cover(unit: Unit, terms: Collection[str], same_idea: float = 1.0) -> float:
    """Share of one content word that `terms` cover, in [0, 1]; `same_idea` for a Chinese word of
    which only another wording stands there."""
    if any(term in terms for term in unit.terms):
        return 1.0 if not unit.parts or _to_the_letter(unit, terms) else same_idea
    if not unit.parts:
        return 0.0
    share = sum(part in terms for part in unit.parts) / len(unit.parts)
    # A part of a word is weaker than the word: 违约 for 违约金.
    return 0.7 * share if len(unit.parts[0]) > 1 else 0.3 * share


def _to_the_letter(unit: Unit, terms: Collection[str]) -> bool:
    """Whether a Chinese word stands in a text itself, alone or within a longer one."""
    return unit.terms[0] in terms or (
        len(unit.parts[0]) > 1 and all(part in terms for part in unit.parts)
    )


def unit_weight(unit: Unit, idf: Callable[[str], float]) -> float:
    """How telling a content word is in this document."""
    return unit.weight * min(idf(term) for term in unit.terms)


def coverage(
    units: Sequence[Unit],
    terms: Collection[str],
    idf: Callable[[str], float],
    same_idea: float = 1.0,
) -> float:
    """Weighted share of `units` that `terms` cover, in [0, 1]; 0 without units. `same_idea`: see
    `unit_cover`."""
    total = covered = 0.0
    for unit in units:
        weight = unit_weight(unit, idf)
        total += weight
        covered += weight * unit_cover(unit, terms, same_idea)
    return covered / total if total else 0.0
