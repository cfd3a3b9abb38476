"""Switches: the names and values of each mode, and what a wrong one is told."""

from __future__ import annotations

import dataclasses

import pytest

from app.types import AskOptions
from eval.errors import BadSwitch
from eval.runs.switches import parse_switches
from eval.types import Mode


def test_every_option_of_the_product_is_a_switch() -> None:
    resolved = parse_switches("evidence", []).resolved
    for field in dataclasses.fields(AskOptions):
        assert resolved[field.name] == getattr(AskOptions(), field.name)


def test_values_are_read_by_the_type_of_the_option() -> None:
    switches = parse_switches(
        "evidence", ["quotes=1", "closeness=0.5", "pages=off", "reinject=chunk", "block_tokens=128"]
    )
    assert switches.ask == AskOptions(quotes=1, closeness=0.5, pages=False, reinject="chunk")
    assert switches.engine_settings()["block_tokens"] == 128
    assert switches.given == {
        "quotes": 1, "closeness": 0.5, "pages": False, "reinject": "chunk", "block_tokens": 128,
    }  # fmt: skip


def test_a_default_that_is_spelled_out_is_no_change() -> None:
    spelled = parse_switches("evidence", ["quotes=5", "nll=on"])
    assert spelled.given == {}
    assert spelled == parse_switches("evidence", [])


@pytest.mark.parametrize("mode", ["evidence", "text", "dense", "bm25", "peer"])
def test_the_default_answer_of_a_mode(mode: Mode) -> None:
    free = mode in ("dense", "peer")
    assert parse_switches(mode, []).run.answer == ("free" if free else "checked")
    assert parse_switches(mode, []).ask.pages == (mode != "text")


@pytest.mark.parametrize(
    ("mode", "wrong", "told"),
    [
        ("evidence", "quots=1", "Did you mean quotes"),
        ("evidence", "quotes=0", "1 to 100"),
        ("evidence", "quotes=many", "1 to 100"),
        ("evidence", "closeness=nan", "0 to 1"),
        ("evidence", "pages=perhaps", "on|off"),
        ("evidence", "evidence=best", "retrieved|gold|random|none"),
        ("evidence", "quotes", "name=value"),
        ("evidence", "evidence=none", "answer=free"),
        ("bm25", "rerank=on", "quotes=1 to 100, closeness=0 to 1, evidence="),
        ("text", "pages=on", "no switch 'pages'"),
        ("peer", "nll=on", "context=retrieved|whole"),
    ],
)
def test_a_wrong_switch_is_told_what_there_is(mode: Mode, wrong: str, told: str) -> None:
    with pytest.raises(BadSwitch) as caught:
        parse_switches(mode, [wrong])
    assert told in caught.value.message
