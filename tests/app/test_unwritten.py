"""Ends that the database did not take, written when it does."""

from __future__ import annotations

import pytest

from app.errors import DatabaseBusy, NotFound
from app.unwritten import Unwritten


def test_ends_that_nobody_wants_any_more_are_not_tried_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unwritten, written = Unwritten(), []

    def gone() -> None:
        raise NotFound("There is no answer ans_1.")

    unwritten.keep("ans_1", gone)
    unwritten.keep("ans_2", lambda: written.append("ans_2"))
    unwritten.write()
    unwritten.write()
    assert written == ["ans_2"] and "ans_1" not in unwritten and "ans_2" not in unwritten
    assert "There is no answer ans_1." in caplog.text


def test_a_database_that_is_away_is_asked_once_a_round_until_it_takes_them_in_order() -> None:
    unwritten, away, asked = Unwritten(), [True], []

    def end(name: str) -> None:
        asked.append(name)
        if away[0]:
            raise DatabaseBusy("away")

    unwritten.keep("a", lambda: end("a"))
    unwritten.keep("b", lambda: end("b"))
    unwritten.write()
    unwritten.write()
    assert asked == ["a", "a"] and "a" in unwritten
    away[0] = False
    unwritten.write()
    unwritten.write()
    assert asked == ["a", "a", "a", "b"] and "b" not in unwritten
