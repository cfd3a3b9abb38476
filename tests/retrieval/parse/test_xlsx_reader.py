from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import openpyxl
import pytest
from openpyxl.comments import Comment

from retrieval.errors import Damaged, NoText, TooLarge
from retrieval.parse import ParseLimits, parse_file
from retrieval.parse.sheet_values import shown
from retrieval.types import Document


@pytest.fixture
def book() -> openpyxl.Workbook:
    """A price list as people write them."""
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Prices"
    sheet.append(["Item", "Price", "Share", "From"])
    sheet.append(["Licence", 1500000, 0.05, date(2024, 3, 1)])
    sheet.append(["Support", 12000.5, 0.0525, None])
    for row in (2, 3):
        sheet.cell(row, 2).number_format = '"USD" #,##0.00'
        sheet.cell(row, 3).number_format = "0%"
    return made


@pytest.fixture
def parse(tmp_path: Path) -> Callable[[openpyxl.Workbook], Document]:
    def run(made: openpyxl.Workbook) -> Document:
        path = tmp_path / "prices.xlsx"
        made.save(path)
        return parse_file(path, path.name)

    return run


def test_rows_read_as_the_sheet_shows_them(
    book: openpyxl.Workbook, parse: Callable[[openpyxl.Workbook], Document]
) -> None:
    terms = book.create_sheet("付款条款")
    terms["B2"] = "首付款为合同总价的30%。\n余款于验收后支付。"
    document = parse(book)
    assert document.text.split("\n") == [
        "Prices",
        "Item | Price | Share | From",
        "Licence | USD 1,500,000.00 | 5% | 2024-03-01",
        "Support | USD 12,000.50 | 5.25%",
        "付款条款",
        "首付款为合同总价的30%。 余款于验收后支付。",
        "",
    ]
    assert [page.label for page in document.pages] == ["Prices", "付款条款"]
    assert document.pages[-1].end == len(document.text)
    assert document.receipt is not None
    assert document.receipt.tables == 2
    assert document.receipt.figures.missing_count == 0


def test_empty_cells_leave_no_mark(
    book: openpyxl.Workbook, parse: Callable[[openpyxl.Workbook], Document]
) -> None:
    book["Prices"]["F5"] = "Total"
    book["Prices"]["H5"] = 7
    assert "\nTotal | 7\n" in parse(book).text


def test_hidden_cells_and_comments_stay_out_with_a_warning(
    book: openpyxl.Workbook, parse: Callable[[openpyxl.Workbook], Document]
) -> None:
    sheet = book["Prices"]
    sheet.append(["Secret margin", 777])
    sheet.row_dimensions[4].hidden = True
    sheet.column_dimensions["D"].hidden = True
    sheet["A2"].comment = Comment("ask for 20% more", "me")
    draft = book.create_sheet("Draft")
    draft["A1"] = "Old price 999"
    draft.sheet_state = "hidden"
    document = parse(book)
    for gone in ("777", "2024", "20%", "999"):
        assert gone not in document.text
    assert {warning.code for warning in document.warnings} == {"hidden_text", "comments"}
    assert "sheet “Draft”" in document.warnings[0].message
    assert document.receipt is not None
    figures = document.receipt.figures
    assert figures.missing_count == 0
    assert figures.left_out == len(["2024", "03", "01", "777", "999"])


def test_formulas_without_results_are_named(
    book: openpyxl.Workbook, parse: Callable[[openpyxl.Workbook], Document]
) -> None:
    book["Prices"]["B9"] = "=SUM(B2:B3)"
    (warning,) = parse(book).warnings
    assert warning.code == "formulas_without_values"
    assert "Prices!B9" in warning.message


def test_a_cell_in_the_last_corner_costs_nothing(
    book: openpyxl.Workbook, parse: Callable[[openpyxl.Workbook], Document]
) -> None:
    book["Prices"]["XFD1048576"] = "the end"
    assert parse(book).text.endswith("\nthe end\n")


def test_an_empty_workbook_is_refused(parse: Callable[[openpyxl.Workbook], Document]) -> None:
    with pytest.raises(NoText):
        parse(openpyxl.Workbook())


def test_a_broken_or_bombed_workbook_is_refused(book: openpyxl.Workbook, tmp_path: Path) -> None:
    stream = io.BytesIO()
    book.save(stream)
    broken = tmp_path / "broken.xlsx"
    bombed = tmp_path / "bombed.xlsx"
    with (
        zipfile.ZipFile(stream) as source,
        zipfile.ZipFile(broken, "w") as cut,
        zipfile.ZipFile(bombed, "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in source.namelist():
            content = source.read(name)
            cut.writestr(name, content[: len(content) // 2])
            is_sheet = name.startswith("xl/worksheets/")
            bomb.writestr(name, b" " * 20_000_000 + content if is_sheet else content)
    with pytest.raises(Damaged):
        parse_file(broken, broken.name)
    with pytest.raises(TooLarge):
        parse_file(bombed, bombed.name, limits=ParseLimits())


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (1500000, "#,##0.00", "1,500,000.00"),
        (1234.567, "#,##0", "1,234.567"),
        (-1234.5, "#,##0.00_);[Red](#,##0.00)", "-1,234.50"),
        (12.5, "[$EUR] #,##0.00", "EUR 12.50"),
        (12.5, "[$¥-804]#,##0.00", "¥12.50"),
        (12, '0"元"', "12元"),
        (30, '0" days"', "30 days"),
        (0.5, "# ?/?", "0.5"),
        (1500, "0.00E+00", "1500"),
        (0.1 + 0.2, "General", "0.3"),
        (True, "General", "TRUE"),
        ("1.10", "@", "1.10"),
    ],
)
def test_a_value_is_written_as_people_read_it(value: object, code: str, text: str) -> None:
    assert shown(value, code) == text


def test_a_computed_value_is_rounded_as_shown() -> None:
    assert shown(1234.5666666, "#,##0.00", computed=True) == "1,234.57"
