"""The sample contracts: committed files are what the source gives, and gold spans are exact."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import docx
import pypdfium2
import pytest

from retrieval.parse import parse_file

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
RECORDS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (SAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
BY_LANG = pytest.mark.parametrize("record", RECORDS, ids=[r["lang"] for r in RECORDS])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_committed_files_are_what_the_source_gives(lang: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.make_samples", "--check", "--lang", lang],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if "LXGW WenKai" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def test_files_stay_small() -> None:
    files = [p for p in SAMPLES.iterdir() if p.suffix in {".pdf", ".docx"}]
    assert len(files) == 4
    assert sum(p.stat().st_size for p in files) < 1_500_000


@BY_LANG
def test_pdf_has_thirty_pages_roman_front_matter_and_embedded_fonts(record: dict[str, Any]) -> None:
    path = SAMPLES / record["file"]
    with pypdfium2.PdfDocument(path) as pdf:
        labels = [pdf.get_page_label(index) for index in range(len(pdf))]
    assert len(labels) >= 30
    assert labels[:5] == ["i", "ii", "iii", "iv", "1"]
    assert labels[-1] == str(len(labels) - 4)
    data = path.read_bytes()
    fonts = set(re.findall(rb"/BaseFont /(\S+)", data))
    embedded = {name for name in fonts if b"+" in name}
    # reportlab names Helvetica in every file, whether or not a page uses it.
    assert len(embedded) >= 2 and fonts - embedded <= {b"Helvetica"}


@BY_LANG
def test_gold_spans_are_exact(record: dict[str, Any]) -> None:
    text = parse_file(SAMPLES / record["file"], record["file"]).text
    answerable = [qa for qa in record["qas"] if not qa["is_impossible"]]
    assert len(answerable) == 15
    for qa in answerable:
        (answer,), (start,) = qa["answers"], qa["answer_starts"]
        moved = f"{qa['qid']}: reading has changed; run python -m scripts.make_samples"
        assert answer and text[start : start + len(answer)] == answer, moved
        assert text.count(answer) == 1, qa["qid"]


@BY_LANG
def test_unanswerable_questions_have_no_gold(record: dict[str, Any]) -> None:
    impossible = [qa for qa in record["qas"] if qa["is_impossible"]]
    assert sorted(qa["category"] for qa in impossible) == ["near miss", "near miss", "unrelated"]
    assert all(qa["answers"] == [] and qa["answer_starts"] == [] for qa in impossible)
    assert len({qa["qid"] for qa in record["qas"]}) == 18


@BY_LANG
def test_word_computes_the_clause_numbers(record: dict[str, Any]) -> None:
    stem = Path(record["file"]).stem
    with zipfile.ZipFile(SAMPLES / f"{stem}.docx") as package:
        numbering = package.read("word/numbering.xml").decode()
        body = package.read("word/document.xml").decode()
    level = "第%1条" if record["lang"] == "zh" else "%1."
    assert f'w:val="{level}"' in numbering
    assert body.count("<w:numPr>") > 200
    headings = [
        paragraph.text
        for paragraph in docx.Document(str(SAMPLES / f"{stem}.docx")).paragraphs
        if paragraph.style is not None and paragraph.style.name == "Heading 2"
    ]
    assert len(headings) > 40
    assert not [text for text in headings if re.match(r"[第\d(（]", text)]


@BY_LANG
def test_word_file_has_the_gold_passages(record: dict[str, Any]) -> None:
    name = f"{Path(record['file']).stem}.docx"
    text = re.sub(r"[\s|]", "", parse_file(SAMPLES / name, name).text)
    for qa in record["qas"]:
        for answer in qa["answers"]:
            assert re.sub(r"[\s|]", "", answer) in text, qa["qid"]
