import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eval import statistics
from eval.statistics import estimate, percentiles, tail_probability

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_percentiles_interpolate_and_hold_back_p99() -> None:
    assert percentiles([]) == statistics.Percentiles(0, None, None, None)
    found = percentiles([4.0, 1.0, 3.0, 2.0])
    assert (found.n, found.p50, found.p99) == (4, 2.5, None)
    assert found.p95 == pytest.approx(3.85)
    assert percentiles([1.0] * 99).p99 is None
    assert percentiles([1.0] * 100).p99 == 1.0


def test_nothing_can_be_said_about_too_little() -> None:
    assert estimate([]) is None
    assert estimate([0.5]) == statistics.Estimate(1, 0.5, None, None)
    assert estimate([0.0, 1.0] * 4, ["a", "b", "c", "d"] * 2) == statistics.Estimate(
        8, 0.5, None, None
    )
    some = estimate([0.0, 1.0, 0.0, 1.0, 0.0])
    assert some is not None and some.low is not None


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values in 1 groups"):
        estimate([1.0, 2.0], ["a"])
    with pytest.raises(ValueError, match="finite"):
        estimate([1.0, float("nan")])


def test_the_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(5).gamma(2.0, 3.0, 80)
    ours = estimate(list(values), seed=1)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile",
        confidence_level=1 - 2 * tail_probability(80), rng=np.random.default_rng(2),
    ).confidence_interval  # fmt: skip
    assert ours is not None
    assert ours.low == pytest.approx(theirs.low, abs=0.12)
    assert ours.high == pytest.approx(theirs.high, abs=0.12)
    assert ours.mean == pytest.approx(values.mean())


def test_questions_on_one_document_are_one_draw() -> None:
    """Ten questions a document that all say the same tell no more than one of them."""
    documents = np.random.default_rng(3).random(20)
    once = estimate(list(documents), seed=4)
    repeated = estimate(list(np.repeat(documents, 10)), [n // 10 for n in range(200)], seed=4)
    as_if_independent = estimate(list(np.repeat(documents, 10)), seed=4)
    assert once is not None and repeated is not None and as_if_independent is not None
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high))
    width = (repeated.high or 0) - (repeated.low or 0)
    assert width > 2.5 * ((as_if_independent.high or 0) - (as_if_independent.low or 0))


def test_groups_weigh_by_their_size() -> None:
    found = estimate([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"])
    assert found is not None
    assert found.mean == 0.75


@pytest.mark.parametrize(("count", "low"), [(5, 0.478), (20, 0.832), (100, 0.964)])
def test_all_right_is_not_certain(count: int, low: float) -> None:
    """The exact binomial bound, which resampling can't see."""
    right = estimate([1.0] * count, share=True)
    wrong = estimate([0.0] * count, share=True)
    assert right is not None and wrong is not None
    assert (right.low, right.high) == (pytest.approx(low, abs=1e-3), 1.0)
    assert (wrong.low, wrong.high) == (0.0, pytest.approx(1 - low, abs=1e-3))
    exact = stats.binomtest(count, count).proportion_ci(method="exact")
    assert right.low == pytest.approx(exact.low)


def test_few_groups_get_wider_intervals() -> None:
    tails = [tail_probability(groups) for groups in (2, 5, 10, 30, 1000)]
    assert tails == sorted(tails)
    assert tails[-1] == pytest.approx(0.025, abs=3e-4)
    covered = plain = 0
    source = np.random.default_rng(11)
    for seed in range(300):
        values = list(source.normal(size=8))
        found = estimate(values, seed=seed)
        assert found is not None and found.low is not None and found.high is not None
        covered += found.low <= 0 <= found.high
        means = np.mean(source.choice(values, (500, 8)), 1)
        low, high = np.percentile(means, (2.5, 97.5))
        plain += low <= 0 <= high
    assert plain / 300 < 0.91
    assert covered / 300 > 0.92


def test_batches_draw_what_one_draw_does(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(np.random.default_rng(1).random(37))
    whole = estimate(values, seed=9)
    monkeypatch.setattr(statistics, "_BATCH", 500)
    assert estimate(values, seed=9) == whole


@given(VALUES, st.integers(0, 9))
def test_the_interval_is_repeatable_and_inside_the_values(values: list[float], seed: int) -> None:
    found = estimate(values, seed=seed)
    assert found == estimate(values, seed=seed)
    assert found is not None
    if found.low is not None and found.high is not None:
        slack = 1e-9
        assert min(values) - slack <= found.low <= found.high <= max(values) + slack
