"""Two versions of a contract from files: the samples as PDF and DOCX, and contracts of 100 pages
with twelve planted changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.comparisons import compare_files
from app.errors import BadRequest, NotFound
from eval.comparison_score import score
from eval.planted_changes import plant
from retrieval.compare import Comparison
from retrieval.parse import parse_file
from retrieval.types import Language

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = {"en": "supply-agreement.en", "zh": "equipment-contract.zh"}
PAGE_CHARS = {"en": 1_400, "zh": 400}
"""Characters on a page of the PDF samples."""


def long_contract(language: Language) -> str:
    """The sample several times over, each a volume of its own, 100 pages or more."""
    path = SAMPLES / f"{NAMES[language]}.docx"
    text = parse_file(path, path.name).text
    heading = "VOLUME {}\n" if language == "en" else "第{}卷\n"
    volumes = -(-100 * PAGE_CHARS[language] // len(text))
    return "\n\n".join(heading.format(n) + text for n in range(1, volumes + 1))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pdf_and_docx_of_one_contract_do_not_differ(language: Language) -> None:
    name = NAMES[language]
    found = compare_files(SAMPLES / f"{name}.pdf", SAMPLES / f"{name}.docx")
    assert found.changes == () and found.restated == ()
    assert found.identical
    assert found.totals.same == found.totals.old_clauses > 200


@pytest.mark.parametrize(("language", "planted"), [("en", 12), ("zh", 12)])
@pytest.mark.parametrize("seed", range(2))
def test_planted_changes_in_a_hundred_pages(
    tmp_path: Path, language: Language, planted: int, seed: int
) -> None:
    text = long_contract(language)
    assert len(text) >= 100 * PAGE_CHARS[language]
    changed, plants = plant(text, language, seed)
    assert len(plants) == planted, {one.kind for one in plants}
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text(text, encoding="utf-8")
    new.write_text(changed, encoding="utf-8")
    started = time.process_time()
    result = compare_files(old, new)
    elapsed = time.process_time() - started
    report = score(Comparison(result.changes, result.restated, result.totals), plants)
    assert report.found == report.planted
    assert report.wrong == ()
    assert result.restated == ()
    # Seconds of the processor: a busy machine must not fail the test.
    assert elapsed < 5


def test_same_file_twice_says_so() -> None:
    path = SAMPLES / "supply-agreement.en.docx"
    found = compare_files(path, path)
    assert found.changes == () and found.identical
    assert [warning.code for warning in found.warnings] == ["same_document"]


def test_two_languages_are_refused() -> None:
    with pytest.raises(BadRequest) as refused:
        compare_files(SAMPLES / "supply-agreement.en.docx", SAMPLES / "equipment-contract.zh.docx")
    assert refused.value.code == "different_languages"
    assert "Chinese" in refused.value.message


def test_unrelated_texts_are_compared_with_a_warning(tmp_path: Path) -> None:
    other = tmp_path / "poem.txt"
    other.write_text("Rain over hills, nobody waits there tonight. " * 3, encoding="utf-8")
    found = compare_files(SAMPLES / "supply-agreement.en.docx", other)
    assert "little_in_common" in [warning.code for warning in found.warnings]
    assert found.changes


def test_missing_file_and_folder(tmp_path: Path) -> None:
    path = SAMPLES / "supply-agreement.en.docx"
    with pytest.raises(NotFound, match="There is no file"):
        compare_files(path, tmp_path / "none.txt")
    with pytest.raises(BadRequest, match="folder"):
        compare_files(tmp_path, path)


def test_a_text_file_has_no_pages(tmp_path: Path) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("1. Rent\nThe rent is EUR 100.\n", encoding="utf-8")
    new.write_text("1. Rent\nThe rent is EUR 200.\n", encoding="utf-8")
    (change,) = compare_files(old, new).changes
    assert change.old is not None and change.old.clause == "1" and change.old.page is None
    assert change.edits[0].new.page is None
