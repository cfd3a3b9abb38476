"""Running headers and footers of a DOCX: which ones Word shows, without their page numbers.

A contract's number often stands nowhere else, so they are read once, at the end. It knows neither
the body nor on which pages they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy

from lxml import etree

from retrieval.parse.docx_package import Package
from retrieval.parse.docx_styles import W, is_on

_REL_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PAGE_FIELD = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|SECTION)\b", re.IGNORECASE)
# What is left of "Page 3 of 12" or 第 3 页 共 12 页 without its numbers.
_PAGE_WORDS = re.compile(r"(?i)\b(?:page|pg|of|p)\b|[第共页頁总計计]|[\d\W_]")


def margin_parts(package: Package, root: etree._Element) -> list[tuple[str, etree._Element]]:
    """("header" or "footer", its part without page numbers) as the sections first show them."""
    found: list[tuple[str, etree._Element]] = []
    for kind in ("header", "footer"):
        parts = package.all_related(kind)
        used: set[str] = set()
        for section in root.iter(W + "sectPr"):
            for reference in section.findall(W + kind + "Reference"):
                key = reference.get(_REL_ID, "")
                first = reference.get(W + "type") == "first"
                if key in used or key not in parts or (first and not is_on(section, "titlePg")):
                    continue
                used.add(key)
                found.append((kind, _without_page_numbers(parts[key])))
    return found


def margin_lines(
    parts: list[tuple[str, etree._Element]], lines_of: Callable[[etree._Element], list[str]]
) -> list[str]:
    """Each different line of the parts once, marked "[header]" or "[footer]"."""
    found: dict[str, None] = {}
    for kind, part in parts:
        for line in lines_of(part):
            text = line.replace("\f", " ").strip()
            if _PAGE_WORDS.sub("", text):
                found[f"[{kind}] {text}"] = None
    return list(found)


def margin_source(
    parts: list[tuple[str, etree._Element]], plain: Callable[[etree._Element], str]
) -> tuple[str, str]:
    """(the words of the parts, those left out) for the second count; what several sections repeat
    counts once, as it is read once."""
    different = dict.fromkeys(line.strip() for _, part in parts for line in plain(part).split("\n"))
    dropped = [line for line in different if not _PAGE_WORDS.sub("", line)]
    return "\n".join(different), "\n".join(dropped)


def _without_page_numbers(part: etree._Element) -> etree._Element:
    """A copy without the results of page-number fields, which differ from page to page."""
    part = deepcopy(part)
    dropped: list[etree._Element] = [
        field
        for field in part.iter(W + "fldSimple")
        if _PAGE_FIELD.match(field.get(W + "instr", ""))
    ]
    # A field is a begin mark, its instruction, a separator, its result and an end mark.
    open_fields: list[str] = []
    for run in part.iter(W + "r"):
        mark = run.find(W + "fldChar")
        kind = None if mark is None else mark.get(W + "fldCharType")
        if kind == "begin":
            open_fields.append("")
        elif kind == "end" and open_fields:
            open_fields.pop()
        for instruction in run.iter(W + "instrText"):
            if open_fields:
                open_fields[-1] += instruction.text or ""
        if open_fields and kind is None and _PAGE_FIELD.match(open_fields[-1]):
            dropped.append(run)
    for node in dropped:
        parent = node.getparent()
        if parent is not None:
            parent.remove(node)
    return part
