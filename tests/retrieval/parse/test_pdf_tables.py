"""Ruled tables of PDFs read row by row; text in columns and in bilingual cells read as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Table, TableStyle

from retrieval.parse import parse_file
from retrieval.parse.pdf_grid import grids_of
from retrieval.types import Document

MakePdf = Callable[..., Path]
WIDTH, HEIGHT = A4
RULED = ("GRID", (0, 0), (-1, -1), 0.6, colors.black)
CHINESE = ParagraphStyle("zh", fontName="STSong-Light", fontSize=10, leading=14, wordWrap="CJK")
ENGLISH = ParagraphStyle("en", fontName="Helvetica", fontSize=10, leading=13)


@pytest.fixture(autouse=True, scope="module")
def chinese_font() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))


def table(
    rows: list[list[object]], widths: list[float], *style: tuple[object, ...], top: float = 120
) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, HEIGHT - top + 20, "The prices are as follows:")
        drawn = Table(rows, widths)
        drawn.setStyle(TableStyle([*style, ("VALIGN", (0, 0), (-1, -1), "MIDDLE")]))
        _, height = drawn.wrapOn(canvas, WIDTH, HEIGHT)
        drawn.drawOn(canvas, 72, HEIGHT - top - height)
        canvas.drawString(72, HEIGHT - top - height - 20, "Prices are net of tax.")

    return draw


def read(path: Path) -> Document:
    document = parse_file(path, path.name)
    for page in document.pages:
        assert len(document.char_boxes[page.number]) == page.end - page.start
    assert document.receipt is not None
    assert document.receipt.figures.missing == ()
    return document


def lines(path: Path) -> list[str]:
    return read(path).text.split("\n")


def test_chinese_cells_do_not_run_together_and_wrapped_ones_are_whole(make_pdf: MakePdf) -> None:
    rows: list[list[object]] = [
        ["序号", "名称", "金额（万元）"],
        ["1", Paragraph("盐城市高新技术产业开发区投资集团有限公司", CHINESE), "330,435.30"],
        ["2", Paragraph("徽商银行", CHINESE), "73,700.00"],
    ]
    font = ("FONT", (0, 0), (-1, -1), "STSong-Light", 10)
    path = make_pdf([table(rows, [40, 110, 120], RULED, font)])
    assert lines(path) == [
        "The prices are as follows:",
        "序号 | 名称 | 金额（万元）",
        "1 | 盐城市高新技术产业开发区投资集团有限公司 | 330,435.30",
        "2 | 徽商银行 | 73,700.00",
        "Prices are net of tax.",
    ]
    receipt = read(path).receipt
    assert receipt is not None
    assert receipt.tables == 1
    assert [page.tables for page in receipt.pages] == [1]


def test_merged_cells_are_read_once_in_their_first_row(make_pdf: MakePdf) -> None:
    rows: list[list[object]] = [
        ["Item", "2024", ""],
        ["", "Price", "Tax"],
        ["Licence", "USD 500", "USD 50"],
    ]
    spans = (("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1)))
    assert lines(make_pdf([table(rows, [100, 80, 80], RULED, *spans)]))[1:-1] == [
        "Item | 2024",
        "Price | Tax",
        "Licence | USD 500 | USD 50",
    ]


def test_a_table_without_rules_between_its_rows(make_pdf: MakePdf) -> None:
    rows: list[list[object]] = [["Item", "Qty", "Price"]]
    rows += [[f"Part {n}", str(n), f"USD {n * n},000.00"] for n in range(1, 7)]
    columns = (
        ("LINEAFTER", (0, 0), (-2, -1), 0.6, colors.black),
        ("BOX", (0, 0), (-1, 0), 0.6, colors.black),
        ("BOX", (0, 1), (-1, -1), 0.6, colors.black),
    )
    found = lines(make_pdf([table(rows, [100, 60, 120], *columns)]))
    assert found[1] == "Item | Qty | Price"
    assert found[2:8] == [f"Part {n} | {n} | USD {n * n},000.00" for n in range(1, 7)]


def test_cells_that_all_wrap_are_one_row(make_pdf: MakePdf) -> None:
    words = (
        "Sample leaf material from each plant",
        "Detailed genetic analysis using markers",
        "The sample was received as four plants",
    )
    rows: list[list[object]] = [[Paragraph(text, ENGLISH) for text in words]]
    found = lines(make_pdf([table(rows, [95, 95, 95], RULED)]))
    assert found[1:-1] == [" | ".join(words)]


def test_a_frame_around_text_is_no_table(make_pdf: MakePdf) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.rect(60, HEIGHT - 200, 480, 100)
        canvas.drawString(72, HEIGHT - 130, "The Buyer shall pay the price of USD 5,000 within")
        canvas.drawString(72, HEIGHT - 144, "thirty days.")

    document = read(make_pdf([draw]))
    assert document.text == "The Buyer shall pay the price of USD 5,000 within thirty days."
    assert document.receipt is not None and document.receipt.tables == 0


def test_a_table_head_repeated_on_each_page_is_no_furniture(make_pdf: MakePdf) -> None:
    pages = [
        table([["Item", "Price"], [f"Part {n}", f"USD {n * 7}.00"]], [100, 100], RULED, top=60)
        for n in range(1, 6)
    ]
    assert read(make_pdf(pages)).text.count("Item | Price") == 5


CLAUSES = [
    (
        "The Seller shall deliver the goods to the Buyer within thirty (30) days after the date "
        "of this Contract at its own cost and risk, free of any lien. Late delivery costs 0.5% "
        "of the price a day.",
        "卖方应于本合同签订之日起三十日内自担费用和风险向买方交付货物，货物之上不得存有任何权利负担。"
        "迟延交付的，每日按货款的百分之零点五支付违约金，违约金总额不超过货款的百分之十。",
    ),
    (
        "The Buyer shall pay USD 1,250,000.00 to the account of the Seller within ten days after "
        "it has received the goods together with a correct invoice and all documents.",
        "买方应于收到货物、正确的发票及全部单据后十日内向卖方账户支付1,250,000.00美元，逾期付款的，"
        "应按中国人民银行公布的同期贷款利率支付利息，直至全部款项付清之日为止。",
    ),
]


def test_bilingual_cells_are_read_cell_by_cell_as_paragraphs(make_pdf: MakePdf) -> None:
    rows: list[list[object]] = [
        [Paragraph(english, ENGLISH), Paragraph(chinese, CHINESE)] for english, chinese in CLAUSES
    ]
    text = read(make_pdf([table(rows, [220, 220], RULED)])).text
    assert text.split("\n")[1:-1] == [side for clause in CLAUSES for side in clause]


def test_bilingual_columns_without_rules_do_not_mix(make_pdf: MakePdf) -> None:
    rows: list[list[object]] = [
        [Paragraph(english, ENGLISH), Paragraph(chinese, CHINESE)] for english, chinese in CLAUSES
    ]
    text = read(make_pdf([table(rows, [220, 220])])).text
    for english, chinese in CLAUSES:
        assert english in text
        assert chinese in text


@given(
    st.lists(st.integers(20, 90), min_size=2, max_size=6),
    st.lists(st.integers(12, 60), min_size=1, max_size=8),
    st.booleans(),
)
def test_a_full_grid_has_one_cell_a_place(
    widths: list[int], heights: list[int], outer: bool
) -> None:
    xs = [50.0 + sum(widths[:n]) for n in range(len(widths) + 1)]
    ys = [50.0 + sum(heights[:n]) for n in range(len(heights) + 1)]
    kept = slice(None) if outer or len(ys) < 3 else slice(1, -1)
    rules = [(xs[0], y, xs[-1], y) for y in ys] + [(x, ys[0], x, ys[-1]) for x in xs[kept]]
    (grid,) = grids_of(rules) or [None]
    if grid is None:
        # One rule between two columns is all that is left inside.
        assert len(xs[kept]) == 0
        return
    assert len(grid.xs) == len(xs) and len(grid.ys) == len(ys)
    assert len(set(grid.holder.values())) == len(widths) * len(heights)
    for row, y in enumerate(ys[:-1]):
        for column, x in enumerate(xs[:-1]):
            assert grid.cell_at(x + 5, y + 5) == (row, column)
    assert grid.cell_at(0, 0) is None
