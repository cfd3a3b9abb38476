"""Scoring of key terms against gold spans."""

from __future__ import annotations

import json

import pytest

from eval.key_terms import Tally, measure


def test_half_of_the_shorter_span_is_a_match() -> None:
    tally = Tally()
    text = "x" * 100
    tally.add(text, [(0, 10), (50, 60)], [(5, 40), (90, 95)], by_words=False)
    figures = tally.figures()
    assert (figures["place_precision"], figures["place_recall"]) == (0.5, 0.5)
    tally = Tally()
    tally.add(text, [(0, 10)], [(6, 40)], by_words=False)
    assert tally.figures()["place_recall"] == 0.0


def test_names_match_by_words_elsewhere() -> None:
    text = "Acme Inc. and ACME, Inc and Other"
    tally = Tally()
    tally.add(text, [(0, 9)], [(14, 23)], by_words=True)
    assert tally.figures()["place_f1"] == pytest.approx(1.0)
    tally = Tally()
    tally.add(text, [(0, 9)], [(14, 23)], by_words=False)
    assert tally.figures()["place_f1"] == 0.0


def test_stated_counts_documents() -> None:
    tally = Tally()
    tally.add("abc", [(0, 1)], [], by_words=False)
    tally.add("abc", [], [(0, 1)], by_words=False)
    tally.add("abc", [(0, 1)], [(0, 1)], by_words=False)
    figures = tally.figures()
    assert (figures["stated_precision"], figures["stated_recall"]) == (0.5, 0.5)


def test_measure_reads_documents() -> None:
    text = "1. Law\nThis Agreement shall be governed by the laws of the State of Ohio.\n"
    gold = {"category": "Governing Law", "answers": [text[7:-1]], "answer_starts": [7]}
    none = {"category": "Parties", "answers": [], "answer_starts": []}
    tallies, count = measure([json.dumps({"text": text, "qas": [gold, none]})])
    assert count == 1
    assert tallies["Governing Law"].figures()["place_f1"] == pytest.approx(1.0)
    assert tallies["Parties"].stated == {"no-no": 1}
