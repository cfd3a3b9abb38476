"""Makes the sample contracts and their questions from `samples/source/`.

    python -m scripts.make_samples [--check] [--lang LANG] [--out DIR]

`--check` writes nothing; it exits 1 when a committed file differs from what would be written.
Needs the `dev` extra (reportlab) and, for the Chinese PDF, the font named in `sample_pdf.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from scripts.sample_docx import write_docx
from scripts.sample_pdf import FontMissing, write_pdf
from scripts.sample_source import Contract, SourceError, read_contract

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
SOURCE = SAMPLES / "source"
LICENCE = "Apache-2.0"
_STEMS = {"supply-agreement.en": "en", "equipment-contract.zh": "zh"}


def make_samples(out: Path, langs: Collection[str] = ("en", "zh")) -> list[Path]:
    """Write the PDF and DOCX of each contract, and `questions.jsonl` over all of them, into `out`.

    Raises:
        SourceError: the source is not well formed, or a gold passage is not in its contract.
        FontMissing: the font of the Chinese PDF is not installed.
    """
    # `retrieval` is the project's own package; the script also runs without an installation.
    sys.path.insert(0, str(ROOT))
    out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    lines: list[str] = []
    for stem, lang in _STEMS.items():
        if lang not in langs:
            continue
        contract = read_contract(SOURCE / f"{stem}.md")
        for suffix, write in ((".pdf", write_pdf), (".docx", write_docx)):
            path = out / f"{stem}{suffix}"
            write(contract, path)
            written.append(path)
        record = _questions(contract, out / f"{stem}.pdf", SOURCE / f"questions.{lang}.yaml")
        lines.append(json.dumps(record, ensure_ascii=False))
    if len(lines) < len(_STEMS):
        return written
    path = out / "questions.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*written, path]


def _questions(contract: Contract, pdf: Path, source: Path) -> dict[str, Any]:
    from retrieval.parse import parse_file

    text = parse_file(pdf, pdf.name).text
    questions = []
    for number, item in enumerate(yaml.safe_load(source.read_text(encoding="utf-8")), 1):
        gold = item.get("gold")
        start, answer = _find(text, gold, item["question"]) if gold else (-1, "")
        questions.append(
            {
                "qid": f"{contract.doc_id}-{number:02d}",
                "question": item["question"],
                "answers": [answer] if gold else [],
                "answer_starts": [start] if gold else [],
                "is_impossible": gold is None,
                "category": item["category"],
            }
        )
    return {
        "doc_id": contract.doc_id,
        "title": contract.title,
        "lang": contract.lang,
        "kind": "contract",
        "file": pdf.name,
        "source": "written for this project",
        "licence": LICENCE,
        "qas": questions,
    }


def _find(text: str, gold: str, question: str) -> tuple[int, str]:
    """Where `gold` stands in the parsed text. Line breaks and table borders may differ."""
    pieces = [re.escape(c) for c in gold if not c.isspace() and c != "|"]
    matches = list(re.finditer(r"[\s|]*".join(pieces), text))
    if len(matches) != 1:
        raise SourceError(f"{question!r}: its gold passage is {len(matches)} times in the text")
    return matches[0].start(), matches[0][0]


def _differing(out: Path, langs: Collection[str]) -> list[str]:
    return [
        path.name
        for path in make_samples(out, langs)
        if not (SAMPLES / path.name).is_file()
        or path.read_bytes() != (SAMPLES / path.name).read_bytes()
    ]


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--out", type=Path, default=SAMPLES)
    parser.add_argument("--lang", choices=("en", "zh"), help="this language only, no questions")
    options = parser.parse_args()
    langs = (options.lang,) if options.lang else ("en", "zh")
    try:
        if not options.check:
            for path in make_samples(options.out, langs):
                sys.stdout.write(f"{path.stat().st_size:>8}  {path.name}\n")
            return 0
        with tempfile.TemporaryDirectory() as folder:
            differing = _differing(Path(folder), langs)
    except (SourceError, FontMissing) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if differing:
        sys.stderr.write(
            f"These samples are not what the source gives: {', '.join(differing)}. "
            "Run python -m scripts.make_samples and commit the result.\n"
        )
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
