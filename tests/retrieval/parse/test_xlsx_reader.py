from __future__ import annotations

import io
import tracemalloc
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


def rewritten(
    book: openpyxl.Workbook, path: Path, changes: dict[str, tuple[str, str]], renamed: str = ""
) -> Path:
    """The book saved with `changes`: in the part of this name, text for text."""
    stream = io.BytesIO()
    book.save(stream)
    with zipfile.ZipFile(stream) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = source.read(name).decode()
            if name in changes:
                assert changes[name][0] in content
                content = content.replace(*changes[name])
            target.writestr(renamed if renamed and name == SHEET else name, content)
    return path


SHEET = "xl/worksheets/sheet1.xml"
EVERYWHERE = "A1:XFD1048576"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</sheetData>", f'</sheetData><mergeCells><mergeCell ref="{EVERYWHERE}"/></mergeCells>'),
        ("<sheetData>", '<cols><col min="9" max="2000000000" hidden="1"/></cols><sheetData>'),
        (
            "</sheetData>",
            f'</sheetData><hyperlinks><hyperlink ref="{EVERYWHERE}" display="x"/></hyperlinks>',
        ),
    ],
)
def test_ranges_cost_what_their_cells_do(
    book: openpyxl.Workbook, tmp_path: Path, old: str, new: str
) -> None:
    tracemalloc.start()
    try:
        path = rewritten(book, tmp_path / "ranges.xlsx", {SHEET: (old, new)})
        assert parse_file(path, path.name).text.startswith("Prices\nItem")
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_cells_under_a_merged_one_are_not_text(book: openpyxl.Workbook, tmp_path: Path) -> None:
    book["Prices"]["F9"] = 31
    book["Prices"]["G9"] = 37
    merge = '</sheetData><mergeCells><mergeCell ref="F8:G9"/><mergeCell ref="A2:A2"/></mergeCells>'
    path = rewritten(book, tmp_path / "merged.xlsx", {SHEET: ("</sheetData>", merge)})
    text = parse_file(path, path.name).text
    assert "Licence | USD" in text
    assert "31" not in text
    assert "37" not in text


def test_a_sheet_outside_its_folder_or_named_twice_is_refused(
    book: openpyxl.Workbook, tmp_path: Path
) -> None:
    relations = "xl/_rels/workbook.xml.rels"
    hidden = rewritten(
        book, tmp_path / "a.xlsx", {relations: ("sheet1.xml", "sheet1.dat")}, SHEET[:-3] + "dat"
    )
    with pytest.raises(Damaged):
        parse_file(hidden, hidden.name)
    book.create_sheet("Again")["A1"] = 1
    twice = rewritten(book, tmp_path / "b.xlsx", {relations: ("sheet2.xml", "sheet1.xml")})
    with pytest.raises(Damaged):
        parse_file(twice, twice.name)


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        (SHEET, "</sheetData>", "</sheet>"),
        ("[Content_Types].xml", "sheet.main", "no.main"),
        ("xl/styles.xml", 'numFmtId="164" fontId', 'numFmtId="999" fontId'),
    ],
)
def test_what_openpyxl_stumbles_over_is_refused(
    book: openpyxl.Workbook, tmp_path: Path, part: str, old: str, new: str
) -> None:
    path = rewritten(book, tmp_path / "odd.xlsx", {part: (old, new)})
    with pytest.raises(Damaged):
        parse_file(path, path.name)


def test_more_cells_than_a_sheet_of_a_contract_has_are_refused(
    book: openpyxl.Workbook, tmp_path: Path
) -> None:
    stream = io.BytesIO()
    book.save(stream)
    path = tmp_path / "cells.xlsx"
    with (
        zipfile.ZipFile(stream) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            content = source.read(name)
            if name == SHEET:
                content = content.replace(b"</sheetData>", b"<row/>" * 1_300_000 + b"</sheetData>")
            target.writestr(name, content)
    with pytest.raises(TooLarge):
        parse_file(path, path.name)


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
    assert shown(1e300, "0.00", computed=True) == "1" + "0" * 300 + ".00"
    assert shown(1234.5, "0." + "0" * 30, computed=True) == "1234.5" + "0" * 29
