"""The sample: even over files, spread over documents, in proportion, the same for a seed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.errors import DatasetError
from eval.runs.sampling import Wanted, draw_sample, even_shares

Maker = Callable[..., Path]


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 50), min_size=1), st.integers(0, 300))
def test_shares_are_as_even_as_the_sizes_allow(sizes: dict[int, int], total: int) -> None:
    shares = even_shares(sizes, total)
    assert sum(shares.values()) == min(total, sum(sizes.values()))
    assert all(0 <= shares[name] <= sizes[name] for name in sizes)
    full = [name for name in sizes if shares[name] == sizes[name]]
    others = [shares[name] for name in sizes if name not in full]
    if others:
        assert max(others) - min(others) <= 1
        assert all(shares[name] <= max(others) + 1 for name in full)


def test_files_and_documents_are_covered_evenly(question_set: Maker) -> None:
    paths = [question_set("a.jsonl", documents=8), question_set("b.jsonl", documents=2)]
    sample = draw_sample(paths, None, Wanted(limit=12))
    assert Counter(item.dataset for item in sample.listed) == {"a": 6, "b": 6}
    of_a = Counter(item.doc_id for item in sample.listed if item.dataset == "a")
    assert set(of_a.values()) == {1}
    # Two of three questions have an answer.
    assert Counter(item.answerable for item in sample.listed) == {True: 8, False: 4}


@pytest.mark.parametrize("limit", [1, 2, 5, 17, 30, 99])
def test_a_sample_is_the_same_for_a_seed_and_differs_for_others(
    question_set: Maker, limit: int
) -> None:
    path = question_set(documents=10)
    one = draw_sample([path], None, Wanted(limit=limit, seed=1))
    assert one.listed == draw_sample([path], None, Wanted(limit=limit, seed=1)).listed
    assert len(one.listed) == min(limit, 30)
    assert [item.place for item in one.listed] == sorted(item.place for item in one.listed)
    if limit < 20:
        others = [draw_sample([path], None, Wanted(limit=limit, seed=s)).listed for s in (2, 3, 4)]
        assert any(other != one.listed for other in others)


def test_the_digest_follows_the_text(question_set: Maker) -> None:
    path = question_set()
    before = draw_sample([path], None, Wanted()).digest
    path.write_text(path.read_text().replace("address", "abode"), encoding="utf-8")
    assert draw_sample([path], None, Wanted()).digest != before


def test_names_are_made_unique(question_set: Maker, tmp_path: Path) -> None:
    path = question_set(documents=2)
    names = [item.name for item in draw_sample([path], None, Wanted()).listed]
    assert names[:2] == ["set-0/price", "set-0/notice"]
    (tmp_path / "other").mkdir()
    twin = tmp_path / "other" / "set.jsonl"
    twin.write_bytes(path.read_bytes())
    listed = draw_sample([path, twin], None, Wanted()).listed
    assert len({item.name for item in listed}) == len(listed) == 12
    assert listed[-1].name == "other/set/set-1/insurance"
    with pytest.raises(DatasetError, match="stands twice"):
        draw_sample([path, path], None, Wanted())


def test_filters(question_set: Maker) -> None:
    short, long = question_set("a.jsonl"), question_set("b.jsonl", filler=40)
    paths = [short, long]
    answered = draw_sample(paths, None, Wanted(only="answerable"))
    assert len(answered.listed) == 12 and all(item.answerable for item in answered.listed)
    silent = draw_sample(paths, None, Wanted(only="unanswerable"))
    assert not any(item.answerable for item in silent.listed)
    assert {i.dataset for i in draw_sample(paths, None, Wanted(min_tokens=1000)).listed} == {"b"}
    assert {i.dataset for i in draw_sample(paths, None, Wanted(max_tokens=1000)).listed} == {"a"}
    with pytest.raises(DatasetError, match="None of the 18 questions"):
        draw_sample(paths, None, Wanted(lang="zh"))


def test_documents_come_with_the_questions_that_are_left(question_set: Maker) -> None:
    path = question_set(documents=4)
    sample = draw_sample([path], None, Wanted())
    done = frozenset(item.name for item in sample.listed if item.doc_id != "set-2")
    (planned,) = sample.opened(done)
    assert planned.document.doc_id == "set-2"
    assert [question.qid for _, question in planned.questions] == ["price", "notice", "insurance"]
    original = json.loads(path.read_text().splitlines()[2])["text"]
    assert planned.document.text == original
