"""The HTML page as text: self-contained, well formed, hostile texts inert."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bs4 import BeautifulSoup

from eval.reports.assembly import assemble
from eval.reports.page import html_page

Make = Callable[..., Any]


def test_hostile_texts_are_shown_as_text(hostile_page: str, evil: str) -> None:
    soup = BeautifulSoup(hostile_page, "lxml")
    assert soup.find_all(["script", "img", "iframe", "object", "embed", "form"]) == []
    for tag in soup.find_all(True):
        assert not [name for name in tag.attrs if name.startswith("on")], tag.name
    assert soup.title is not None and soup.title.get_text() == f"Title {evil}"
    assert hostile_page.count("{{ 7*7 }}") > 3 and ">49<" not in hostile_page
    terms = [tag.get_text() for tag in soup.select(".sample dd")]
    assert evil in terms
    assert any(evil in tag.get_text() for tag in soup.select("summary"))
    assert len(soup.find_all("style")) == 1


def test_nothing_is_fetched_from_elsewhere(hostile_page: str) -> None:
    soup = BeautifulSoup(hostile_page, "lxml")
    for name in ("src", "href", "xlink:href", "action", "data", "poster"):
        for tag in soup.find_all(attrs={name: True}):
            assert str(tag[name]).startswith(("#", "data:")), (tag.name, tag[name])
    assert "@import" not in hostile_page
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", hostile_page))
    policy = soup.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    assert policy is not None and "default-src 'none'" in str(policy["content"])


def test_ids_are_unique_and_references_lead_somewhere(hostile_page: str) -> None:
    soup = BeautifulSoup(hostile_page, "lxml")
    ids = [str(tag["id"]) for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    wanted = {str(tag[name])[1:] for name in ("href", "xlink:href")
              for tag in soup.find_all(attrs={name: re.compile("^#")})}  # fmt: skip
    wanted |= {target[1:] for target in re.findall(r"url\((#[^)]*)\)", hostile_page)}
    assert wanted <= set(ids)


def test_charts_follow_the_pages_colours_and_name_no_run(hostile_page: str) -> None:
    charts = [str(tag) for tag in BeautifulSoup(hostile_page, "lxml").find_all("svg")]
    assert len(charts) > 8
    defined = set(re.findall(r"(--[a-z]+(?:-\d)?):", hostile_page))
    for svg in charts:
        assert re.findall(r"#[0-9a-f]{6}\b", re.sub(r'"#[^"]*"|url\(#[^)]*\)', "", svg)) == []
        assert set(re.findall(r"var\((--[a-z0-9-]+)\)", svg)) <= defined
        assert "检索" not in svg and "onmouseover" not in svg
        assert "font-family" not in svg and "aria-label" in svg


def test_the_page_says_what_the_report_must(hostile_page: str) -> None:
    text = BeautifulSoup(hostile_page, "lxml").get_text(" ")
    parts = (
        "Which mode is the default", "Candidates are the runs", "Runs", "Side by side",
        "On common questions", "By language", "Charts", "Failures", "Worst samples",
    )  # fmt: skip
    for part in parts:
        assert part in text
    assert "Ablation: one switch at a time" in text


def test_a_report_is_the_same_twice_but_for_its_date(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    folders = [write_run("a", some_records(1)), write_run("b", some_records(2), mode="text")]

    def made() -> str:
        entries = open_runs(*folders)
        return re.sub(r"Made [^<]*", "", html_page(assemble(entries, entries[0])))

    assert made() == made()
