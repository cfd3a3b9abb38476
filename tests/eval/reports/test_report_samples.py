"""Common samples, paired differences and medians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.reports.measures import BY_KEY
from eval.reports.samples import (
    by_sample,
    finished_by_all,
    mean,
    median,
    paired_difference,
    recorded_by_all,
)
from eval.statistics import FEWEST_GROUPS, ROUNDS, tail_probability

HIT = BY_KEY["citation_hit"]
OneRecord = Callable[..., Any]


def hits(one_record: OneRecord, values: list[float | None], documents: int = 3) -> dict[Any, Any]:
    return by_sample(
        one_record(number, documents=documents, scores={"citation_hit": value})
        for number, value in enumerate(values)
    )


def test_a_question_is_the_same_by_set_document_and_name(one_record: OneRecord) -> None:
    first = by_sample([one_record(1), one_record(1, dataset="other"), one_record(1, doc_id="x")])
    assert len(first) == 3
    assert recorded_by_all([first, by_sample([one_record(1)])]) == (("contracts/doc1", "q1"),)


def test_only_what_all_finished_is_common(one_record: OneRecord, one_failure: OneRecord) -> None:
    one = by_sample([one_record(0), one_record(1), one_record(2)])
    other = by_sample([one_record(0), one_failure(1, status="unfit"), one_record(3)])
    assert finished_by_all([one, other]) == (("contracts/doc0", "q0"),)
    assert [name for _, name in recorded_by_all([one, other])] == ["q0", "q1"]


def test_a_paired_difference_takes_what_both_have_a_value_for(one_record: OneRecord) -> None:
    one = hits(one_record, [1.0, 1.0, 0.0, None, 1.0, 1.0])
    base = hits(one_record, [0.0, 1.0, 0.0, 1.0, None, 0.0])
    found = paired_difference(one, base, HIT, tuple(one))
    assert found is not None
    assert (found.n, found.mean) == (4, 0.5)
    assert paired_difference(one, one, HIT, tuple(one)).mean == 0  # type: ignore[union-attr]


def test_a_paired_interval_is_narrower_than_two_separate_ones(one_record: OneRecord) -> None:
    dice = np.random.default_rng(3)
    easy = dice.random(300) < 0.5
    base = hits(one_record, [float(value) for value in easy], documents=60)
    better = [float(value or dice.random() < 0.1) for value in easy]
    one = hits(one_record, better, documents=60)
    apart, other = mean(one, HIT, tuple(one)), mean(base, HIT, tuple(base))
    paired = paired_difference(one, base, HIT, tuple(one))
    assert apart and other and paired and paired.low and apart.low and other.high
    assert apart.low < other.high
    assert paired.low > 0


def test_a_measure_that_applies_to_nothing_has_no_mean(one_record: OneRecord) -> None:
    assert mean(hits(one_record, [None, None]), HIT, [("contracts/doc0", "q0")]) is None


@given(st.lists(st.tuples(st.floats(0.1, 1e5), st.integers(0, 8)), min_size=1, max_size=30))
def test_the_median_is_numpys_and_lies_in_its_interval(pairs: list[tuple[float, int]]) -> None:
    values = [value for value, _ in pairs]
    groups = [str(group) for _, group in pairs]
    found = median(values, groups)
    assert found is not None
    assert found.mean == float(np.median(values))
    if len(set(groups)) < FEWEST_GROUPS:
        assert found.low is None and found.high is None
    else:
        assert found.low is not None and found.high is not None
        assert min(values) <= found.low <= found.high <= max(values)


def test_the_interval_of_a_median_is_that_of_drawing_whole_groups() -> None:
    dice = np.random.default_rng(11)
    groups = [f"d{place % 12}" for place in range(150)]
    values = [float(v) for v in dice.lognormal(3, 0.6, 150)]
    found = median(values, groups)
    pools: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        pools.setdefault(group, []).append(value)
    lists = list(pools.values())
    plain = [
        np.median(np.concatenate([lists[place] for place in dice.integers(0, 12, 12)]))
        for _ in range(ROUNDS)
    ]
    tail = 100 * tail_probability(12)
    low, high = np.percentile(plain, (tail, 100 - tail))
    assert found is not None
    assert found.low == pytest.approx(low, rel=0.03)
    assert found.high == pytest.approx(high, rel=0.03)


def test_no_times_have_no_median() -> None:
    assert median([], []) is None
