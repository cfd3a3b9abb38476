"""Any value reads as the same value in every form it is written in, and as no other value.

The forms come from `eval.corruption.writing`, which shares no code with the readers.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.answer.clause_numbers import find_clause_numbers
from app.answer.dates import find_dates
from app.answer.figures import find_figures
from app.answer.numbers import zh_number
from eval.corruption.numerals import english, hanzi
from eval.corruption.writing import (
    CURRENCIES,
    PERIODS,
    write_clause,
    write_date,
    write_money,
    write_period,
    write_share,
)
from retrieval.types import Language

LANGUAGES = st.sampled_from(("en", "zh"))
WHOLE = st.integers(1, 99_999_999_999)
AMOUNTS = st.one_of(
    WHOLE.map(Decimal),
    st.integers(1, 9_999).map(lambda n: Decimal(n) * 10_000),
    st.integers(1, 9_999_999).map(lambda n: Decimal(n).scaleb(-2)),
)
SHARES = st.one_of(
    st.integers(1, 200).map(Decimal), st.integers(1, 9_999).map(lambda n: Decimal(n).scaleb(-2))
)
CURRENCY, PERIOD = st.sampled_from(CURRENCIES), st.sampled_from(PERIODS)
DAYS = st.dates(date(1950, 1, 1), date(2099, 12, 31))


def figure_keys(forms: list[str]) -> dict[str, list[str]]:
    return {form: [figure.key for figure in find_figures(form)] for form in forms}


def one_key(forms: list[str]) -> str:
    """The key that all forms have, each of them once."""
    keys = figure_keys(forms)
    assert {tuple(found) for found in keys.values()} == {tuple(keys[forms[0]])}, keys
    assert len(keys[forms[0]]) == 1, keys
    return keys[forms[0]][0]


@settings(max_examples=200, deadline=None)
@given(AMOUNTS, CURRENCY, LANGUAGES)
def test_an_amount_is_the_same_in_every_form(
    value: Decimal, currency: str, language: Language
) -> None:
    assert one_key(write_money(value, currency, language)) == f"{value.normalize():f} {currency}"


@settings(max_examples=100, deadline=None)
@given(AMOUNTS, AMOUNTS, CURRENCY, CURRENCY, LANGUAGES, LANGUAGES)
def test_another_amount_or_currency_is_never_the_same(
    one: Decimal, other: Decimal, mine: str, theirs: str, first: Language, second: Language
) -> None:
    assume((one, mine) != (other, theirs))
    left = write_money(one, mine, first)
    assert one_key(left) != one_key(write_money(other, theirs, second))


@settings(max_examples=150, deadline=None)
@given(SHARES)
def test_a_share_is_the_same_in_every_form_and_language(percent: Decimal) -> None:
    forms = write_share(percent, "en") + write_share(percent, "zh")
    assert one_key(forms) == f"{percent.normalize():f} %"


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 999), PERIOD)
def test_a_duration_is_the_same_in_every_form_and_language(count: int, unit: str) -> None:
    one_key(write_period(Decimal(count), unit, "en") + write_period(Decimal(count), unit, "zh"))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 999), st.integers(1, 999), PERIOD, PERIOD)
def test_another_duration_is_never_the_same(one: int, other: int, mine: str, theirs: str) -> None:
    days = {"day": 1, "week": 7}
    months = {"month": 1, "quarter": 3, "year": 12}
    for same in (days, months):
        if mine in same and theirs in same:
            assume(one * same[mine] != other * same[theirs])
    assume((one, mine) != (other, theirs))
    left = one_key(write_period(Decimal(one), mine, "en"))
    assert left != one_key(write_period(Decimal(other), theirs, "zh"))


@settings(max_examples=150, deadline=None)
@given(DAYS, st.integers(-400, 400))
def test_a_date_is_the_same_in_every_form_and_language(day: date, apart: int) -> None:
    forms = write_date(day, "en") + write_date(day, "zh")
    keys = {form: [found.key for found in find_dates(form)] for form in forms}
    assert {tuple(found) for found in keys.values()} == {(f"{day.year}-{day.month}-{day.day}",)}, (
        keys
    )
    if apart:
        other = write_date(day + timedelta(days=apart), "en")[0]
        assert find_dates(other)[0].key != keys[forms[0]][0]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 300), st.sampled_from(("", ".3", ".3(b)", "(ii)")))
def test_a_clause_is_the_same_in_every_form(number: int, rest: str) -> None:
    forms = write_clause(f"{number}{rest}", "en") + (
        [] if rest else write_clause(str(number), "zh")
    )
    keys = {form: [found.key for found in find_clause_numbers(form)] for form in forms}
    assert {tuple(found) for found in keys.values()} == {(f"{number}{rest}",)}, keys


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 999_999_999_999))
def test_numerals_are_read_as_they_are_written(number: int) -> None:
    assert zh_number(hanzi(number)) == number
    assert zh_number(hanzi(number, formal=True)) == number
    assert [figure.value for figure in find_figures(f"{english(number)} units")] == [number]
