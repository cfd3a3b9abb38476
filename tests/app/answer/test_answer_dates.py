"""Dates: one key across languages; ambiguous ones are told apart."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answer.dates import find_dates

FORMS = [
    "2024年3月1日", "二〇二四年三月一日", "2024-03-01", "2024/3/1", "2024.03.01", "1 March 2024",
    "March 1, 2024", "1st day of March, 2024", "Mar. 1st, 2024", "２０２４年３月１日",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_one_date_have_one_key(form: str) -> None:
    (date,) = find_dates(form)
    assert date.key == "2024-3-1"
    assert form[date.start : date.end] == date.text == form


def test_a_date_of_two_readings_is_ambiguous() -> None:
    (date,) = find_dates("03/04/2024")
    assert date.ambiguous
    assert not find_dates("3 April 2024")[0].within(date)
    assert find_dates("03/04/2024")[0].within(date)


def test_a_date_of_one_reading_is_not() -> None:
    assert [date.key for date in find_dates("13/04/2024 and 04/13/2024")] == ["2024-4-13"] * 2


def test_a_part_of_a_date_stands_in_it_but_not_the_other_way() -> None:
    whole, part = find_dates("1 March 2024")[0], find_dates("March 2024")[0]
    assert part.within(whole)
    assert not whole.within(part)


def test_a_day_that_does_not_exist_equals_no_real_day() -> None:
    assert find_dates("2023年2月30日")[0].ambiguous


@pytest.mark.parametrize(
    "text", ["you may 5 times", "2024 units", "12.3.1", "1.2.2024.5", "第3月1日"]
)
def test_what_is_no_date(text: str) -> None:
    assert find_dates(text) == ()


@given(st.dates(datetime.date(1950, 1, 1), datetime.date(2068, 12, 31)))
def test_every_day_is_read_alike(day: datetime.date) -> None:
    forms = [
        f"{day.year}年{day.month}月{day.day}日",
        day.isoformat(),
        f"{day.day} {day:%B} {day.year}",
        f"{day:%B} {day.day}, {day.year}",
    ]
    assert {date.key for form in forms for date in find_dates(form)} == {
        f"{day.year}-{day.month}-{day.day}"
    }
