"""Both languages say everything, with the same blanks to fill in."""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import app.errors
import retrieval.errors
from retrieval.parse.sniff import READS
from ui.advice import ADVICE_ZH, advice
from ui.strings import (
    EN,
    LANG_NAMES,
    LANGS,
    STRINGS,
    ZH,
    text,
)
from ui.suggestions import SAMPLE_SUGGESTIONS, SUGGESTIONS, suggestions

ROOT = Path(__file__).parents[2]


def blanks(words: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(words) if name is not None}


def error_codes() -> Iterator[str]:
    """The code of every error that the use cases and the readers of files can raise."""
    for module in (app.errors, retrieval.errors):
        for _, one in inspect.getmembers(module, inspect.isclass):
            if one.__module__ == module.__name__ and isinstance(getattr(one, "code", None), str):
                yield one.code


def test_both_languages_have_every_key() -> None:
    assert EN.keys() == ZH.keys()
    assert set(STRINGS) == set(LANGS) == set(LANG_NAMES) == set(SUGGESTIONS)


@pytest.mark.parametrize("key", sorted(EN))
def test_words_are_there_and_have_the_same_blanks(key: str) -> None:
    assert EN[key].strip() and ZH[key].strip()
    if key != "clause_named":
        assert any("\u4e00" <= char <= "\u9fff" for char in ZH[key]), "not Chinese"
    assert not any("\u4e00" <= char <= "\u9fff" for char in EN[key])
    assert blanks(EN[key]) == blanks(ZH[key])


def test_every_error_a_reader_can_meet_has_chinese_advice() -> None:
    # Errors of starting the server and of the command line never reach the page.
    elsewhere = {
        "internal",
        "bad_request",
        "bad_parameter",
        "bad_settings",
        "unknown_model",
        "already_serving",
        "client_left",
    }
    elsewhere |= {"conflict", "unavailable", "corrupted", "retrieval_error", "parse_error"}
    missing = set(error_codes()) - elsewhere - ADVICE_ZH.keys()
    assert not missing


def warning_codes() -> set[str]:
    """Code of every warning that readers of files, comparisons and answers give."""
    given = re.compile(r'DocumentWarning\(\s*"(\w+)"|"code": "(\w+)",\s*"message"')
    found = {
        one or other
        for package in ("app", "retrieval")
        for path in (ROOT / package).rglob("*.py")
        for one, other in given.findall(path.read_text("utf-8"))
    }
    reader = (ROOT / "retrieval/parse/pdf_reader.py").read_text("utf-8")
    of_pages = r'^ +"(\w+_pages|pages_without_text|hidden_text|recognition_\w+)",$'
    return found | set(re.findall(of_pages, reader, re.M))


def test_every_warning_has_chinese_words() -> None:
    codes = warning_codes()
    assert len(codes) > 20 and {"figures_missing", "unreadable_pages", "read_on_demand"} <= codes
    assert sorted(codes - ADVICE_ZH.keys()) == []


def test_what_names_pages_or_figures_is_told_in_chinese_too() -> None:
    said = advice("zh", "figures_missing", "2 figure(s) are missing: 5, 7.")
    assert "请对照原件核对" in said and "5, 7" in said
    assert advice("zh", "comments", "Comments were left out.") == ADVICE_ZH["comments"]


def test_advice_falls_back_to_the_words_of_the_api() -> None:
    assert advice("en", "encrypted", "Remove the password.") == "Remove the password."
    assert "密码" in advice("zh", "encrypted", "Remove the password.")
    assert advice("zh", "brand_new", "Remove the password.") == "Remove the password."


def test_the_advice_names_every_type_that_is_read() -> None:
    said = ADVICE_ZH["unsupported_type"]
    in_chinese = {"TXT": "文本"}
    for kind in re.findall(r"[A-Z]{3,}|Markdown", READS):
        assert in_chinese.get(kind, kind) in said, kind


def test_suggestions_follow_the_document() -> None:
    assert suggestions("supply-agreement.en.pdf", "en") == SAMPLE_SUGGESTIONS["supply-agreement.en"]
    assert suggestions("other.pdf", "zh") == SUGGESTIONS["zh"]
    assert suggestions("other.pdf", None) == SUGGESTIONS["en"]


def test_unknown_key_is_an_error() -> None:
    with pytest.raises(KeyError):
        text("en", "no_such_words")
