"""Where the text of generated documents and the count of its tokens come from: files of any kind
that is read, question sets, and the tokenizer of a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from app.models import resolve
from app.settings import Settings
from backend.loader import load_checkpoint
from backend.tokenizer import Tokenizer
from eval.datasets import open_dataset
from eval.errors import DatasetError
from eval.tasks.haystack import Text
from retrieval.errors import ParseError
from retrieval.parse import parse_file
from retrieval.types import Language

LanguageChoice = Literal["auto", "en", "zh"]
_SETS = (".json", ".jsonl")
_SIZE = re.compile(r"(\d+)\s*([kKmM]?)")
_FACTORS = {"": 1, "k": 1024, "m": 1024 * 1024}


def open_tokenizer(settings: Settings) -> Tokenizer:
    """The tokenizer of the settings' model; its weights stay on disk. Raises as
    `app.models.resolve` and the loader."""
    return load_checkpoint(resolve(settings)).tokenizer


def read_texts(
    paths: Sequence[Path], tokenizer: Tokenizer, lang: LanguageChoice = "auto"
) -> list[Text]:
    """The texts of files (TXT, PDF, DOCX and so on) and of question sets (.jsonl, .json, folders),
    those of one language only unless `lang` is "auto". A text that comes twice is taken once.

    Raises DatasetError when a file can't be read or no text is left.
    """
    found: dict[str, Text] = {}
    for path in paths:
        for name, text, language in _read(path):
            if lang in ("auto", language):
                found.setdefault(text, Text(name, text, language, tokenizer))
    if not found:
        which = "" if lang == "auto" else f" in the language {lang}"
        raise DatasetError(f"There is no text{which} to plant facts in. Give other files.")
    return list(found.values())


def named_language(name: str) -> LanguageChoice:
    """The choice of this name. Raises DatasetError."""
    known: dict[str, LanguageChoice] = {"auto": "auto", "en": "en", "zh": "zh"}
    if name not in known:
        raise DatasetError(f"There is no language {name!r}. There are: {', '.join(known)}.")
    return known[name]


def parse_size(size: str) -> int:
    """ "16K" -> 16,384, "1M" -> 1,048,576, "5000" -> 5,000. Raises DatasetError."""
    match = _SIZE.fullmatch(size.strip())
    if match is None:
        raise DatasetError(f"{size!r} is no length. Write tokens, such as 4096, 16K or 1M.")
    return int(match[1]) * _FACTORS[match[2].lower()]


def _read(path: Path) -> Iterator[tuple[str, str, Language]]:
    if path.is_dir() or path.suffix.lower() in _SETS:
        for document in open_dataset(path):
            yield document.doc_id, document.text, document.lang
        return
    try:
        parsed = parse_file(path, path.name)
    except OSError as error:
        raise DatasetError(f"{path} can't be opened ({error.strerror}). Check the path.") from error
    except ParseError as error:
        raise DatasetError(f"{path}: {error}") from error
    yield path.name, parsed.text, parsed.language
