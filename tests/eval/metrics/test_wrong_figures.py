from collections.abc import Sequence

import pytest

from eval.metrics import plain
from eval.metrics.facts import document_facts, facts, share
from eval.metrics.wrong_figures import WrongFigures, wrong_figures
from eval.types import CitedSpan, Reply, ReplyTimings

TEXT = (
    "1. Payment\nThe Buyer shall pay USD 1,500,000.00 within thirty (30) days, with interest at "
    "15.00% from 1 March 2024.\n"
    "2. Term\nThe term is five years and ends under Section 7.2.\n"
    "违约金为合同总价的百分之五，自二〇二四年三月一日起计算。\n"
)
PAYMENT = TEXT[TEXT.index("The Buyer") : TEXT.index("\n2.")]
ZH = TEXT[TEXT.index("违约金") : -1]


def reply(
    claims: str = "", cited: Sequence[str] = (PAYMENT,), marked: Sequence[str] = (), shown: str = ""
) -> Reply:
    citations = tuple(
        CitedSpan(TEXT.index(quote), TEXT.index(quote) + len(quote), shown or quote, True)
        for quote in cited
    )
    return Reply(
        "answered", claims, "", ReplyTimings(1.0, 1.0), citations, claims=claims,
        marked=tuple(marked),
    )  # fmt: skip


def count(claims: str, **given: Sequence[str]) -> WrongFigures:
    return wrong_figures(reply(claims, **given), (), TEXT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "claims",
    [
        "The price is $1.5 million, due in 30 days.",
        "The price is USD 1500000 [1].",
        "Interest of 15 per cent runs from March 1, 2024.",
        "Interest of 15% runs from 2024-03-01.",
        "It is due in thirty days under Clause 1.",
        "Nothing with a figure.",
        "",
    ],
)
def test_right_in_another_form(claims: str) -> None:
    assert count(claims) == WrongFigures(0, 0, 0, None)


@pytest.mark.parametrize(
    ("claims", "product", "by_plain"),
    [
        ("Interest is 1500%.", 1, 1),
        ("Interest is 15.", 1, 0),
        ("The price is EUR 1,500,000.", 1, 0),
        ("The price is USD 1,600,000.", 1, 1),
        ("It is due in 30 months.", 1, 0),
        ("Interest runs from 2 March 2024.", 1, 1),
        ("Interest runs from 3 January 2024.", 1, 0),
        ("It is due under Clause 2.", 1, 1),
        ("It is due under Section 7.2.", 1, 1),
        ("违约金为5%。", 1, 1),
    ],
)
def test_wrong_by_each_reading(claims: str, product: int, by_plain: int) -> None:
    assert count(claims) == WrongFigures(1, product, by_plain, None)


def test_chinese_forms_are_one_figure() -> None:
    for claims in ("违约金为5%。", "违约金为５％，从2024年3月1日起。", "百分之五"):
        assert count(claims, cited=[ZH]) == WrongFigures(0, 0, 0, None)
    assert count("违约金为5天。", cited=[ZH]).either == 1
    assert count("违约金为百分之六。", cited=[ZH]).by_plain_reader == 1


def test_a_hole_in_one_reader_is_seen_by_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from eval.metrics import wrong_figures as module

    monkeypatch.setattr(module, "facts", lambda text: facts(""))
    assert count("The price is USD 1,600,000.") == WrongFigures(1, 0, 1, None)
    monkeypatch.undo()
    monkeypatch.setattr(plain, "numbers", lambda text: ())
    assert count("The price is USD 1,600,000.") == WrongFigures(1, 1, 0, None)


def test_marked_figures_are_not_counted() -> None:
    wrong = "The price is USD 7 and the fee is USD 77."
    assert count(wrong).either == 2
    assert count(wrong, marked=["USD 7"]).either == 1
    assert count(wrong, marked=["77"]).either == 1
    assert count(wrong, marked=["7", "77"]).either == 0
    assert count(wrong, marked=["", "price"]).either == 2


def test_markers_of_citations_are_no_figures() -> None:
    assert count("Due in 30 days [1].").either == 0
    assert count("Due in 30 days [3].").either == 1


def test_numbers_that_count_a_list_are_no_figures() -> None:
    assert count("It says:\n81. due in 30 days\n (82) at 15%\n").either == 0
    assert count("It is due in 81. Then 82 days later.\n83.").either == 3


def test_a_shown_quote_is_held_against_the_document() -> None:
    altered = PAYMENT.replace("15.00%", "1500%").replace("thirty (30)", "forty (40)")
    assert wrong_figures(reply(shown=altered), (), TEXT).either == 2
    assert wrong_figures(reply(), (), TEXT).either == 0


def test_a_citation_outside_of_the_document_supports_nothing() -> None:
    outside = CitedSpan(-40, 10**6, PAYMENT, True)
    lost = Reply("answered", "", "", ReplyTimings(1.0, 1.0), (outside,), claims="In 30 days.")
    assert wrong_figures(lost, (), TEXT).by_product_reader > 0


def test_without_citations_the_whole_document_counts() -> None:
    def uncited(claims: str, gold: Sequence[str] = (PAYMENT,)) -> WrongFigures:
        return wrong_figures(reply(claims, cited=()), gold, TEXT)

    assert uncited("Five years under Section 7.2.") == WrongFigures(0, 0, 0, 2)
    assert uncited("It is due in 30 days under Clause 2.") == WrongFigures(0, 0, 0, 1)
    assert uncited("USD 1,600,000") == WrongFigures(1, 1, 1, 1)
    assert uncited("9 years", gold=["nine (9) years"]) == WrongFigures(0, 0, 0, 0)
    assert uncited("The Buyer pays.") == WrongFigures(0, 0, 0, 0)


def test_without_claims_the_prediction_is_judged() -> None:
    said = Reply("answered", "77 days", "77 days", ReplyTimings(1.0, 1.0))
    assert wrong_figures(said, (), TEXT).either == 1


def test_a_long_document_is_read_whole() -> None:
    filler = "The parties agree on nothing in particular here.\n" * 400
    text = f"{filler}The fee is USD 81.25.\n{filler}It ends on 9 May 2031. {'word ' * 5000}8.5%"
    keys = {figure.key for figure in document_facts(text).figures}
    assert {"81.25 USD", "8.5 %"} <= keys
    assert [date.key for date in document_facts(text).dates] == ["2031-5-9"]


@pytest.mark.parametrize("shift", range(0, 4200, 70))
def test_what_is_broken_over_lines_is_read_whole(shift: int) -> None:
    text = "x" * shift + "\n" + "under Section\n7.2 for\n" * 400
    assert [clause.key for clause in document_facts(text).clauses] == ["7.2"]


@pytest.mark.parametrize(
    ("gold", "prediction", "kind", "expected"),
    [
        ("within thirty (30) days", "30 days", "number", 1.0),
        ("30 days", "It is 30.", "number", 1.0),
        ("15.00%", "15", "number", 0.0),
        ("15.00%", "1500%", "number", 0.0),
        ("USD 5 or EUR 6", "USD 5", "number", 0.5),
        ("USD 5", "EUR 5", "number", 0.0),
        ("5万元", "人民币50,000.00元", "number", 1.0),
        ("万分之五", "0.05%", "number", 1.0),
        ("1 March 2024", "2024年3月1日", "date", 1.0),
        ("1 March 2024", "March 2024", "date", 0.0),
        ("第十二条", "Article 12", "clause", 1.0),
        ("Section 5.1(b)", "Section 5.1", "clause", 0.0),
        ("no figure", "30 days", "number", None),
    ],
)
def test_share_of_gold_facts(gold: str, prediction: str, kind: str, expected: float | None) -> None:
    assert share(kind, facts(gold), facts(prediction)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,500.00", {1500}),
        ("1.5 million", {1.5, 1_500_000}),
        ("３万元", {3, 30_000}),
        ("三十万元", {300_000}),
        ("百分之五", {5}),
        ("二〇二四年", {2024}),
        ("第十二条", {12}),
        ("一方", set()),
        ("one party", set()),
        ("twenty-one days", {21}),
        ("two hundred and five", {205}),
        ("March 5, 2024", {3, 5, 2024}),
        ("You may 5 times", {5}),
        ("-5 and 3-4", {-5, 3, 4}),
        ("5.1.2", {5, 1, 2}),
    ],
)
def test_plain_values(text: str, values: set[float]) -> None:
    found = {float(value) for value in plain.values(text)}
    assert found == values or (text.startswith("You may") and found - {5.0} == values)
