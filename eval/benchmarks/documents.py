"""Documents that no cache can know: real sentences in a new order, a salt in every one of them.

KV is named by content, so a benchmark that repeats a stretch of text measures its own cache. Here
each line carries the document's salt and its own number; no stretch longer than a line can then
stand in two documents, or twice in one. Knows text only, no engine and no server.
"""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Callable, Sequence
from pathlib import Path

from eval.errors import DatasetError
from retrieval.errors import RetrievalError
from retrieval.parse import parse_file
from retrieval.sentences import split

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
STRETCH = 160
"""Most characters between two salts, a character outside ASCII counting as four (they cost two to
three tokens each in the default model's tokenizer): about 60 tokens with the salt itself."""
_SALT_LETTERS = 8


def sample_files() -> tuple[Path, ...]:
    """The sample contracts of the source tree. Raises DatasetError where there are none."""
    files = tuple(sorted(SAMPLES.glob("*.docx")))
    if not files:
        raise DatasetError(f"There are no sample contracts in {SAMPLES}; name files with --text")
    return files


def load_pieces(files: Sequence[Path], *, stretch: int = STRETCH) -> tuple[str, ...]:
    """The sentences of the files, each of them once and cut to at most `stretch`.

    Raises DatasetError for a file that can't be read or when none holds a sentence.
    """
    pieces: dict[str, None] = {}
    for path in files:
        try:
            text = parse_file(path, path.name).text
        except (OSError, RetrievalError) as error:
            raise DatasetError(f"{path} can't be read as text for a benchmark: {error}") from error
        for start, end in split(text):
            pieces.update(dict.fromkeys(_cut(" ".join(text[start:end].split()), stretch)))
    if not pieces:
        raise DatasetError("The given files hold no sentence; name others with --text")
    return tuple(pieces)


def salt_of(seed: int) -> str:
    """Eight letters that stand in every line of the document made from this seed."""
    digest = hashlib.blake2s(str(seed).encode()).digest()
    return "".join(string.ascii_lowercase[byte % 26] for byte in digest[:_SALT_LETTERS])


def unique_document(
    tokens: int, *, seed: int, count: Callable[[str], int], pieces: Sequence[str]
) -> str:
    """A text of at least `tokens` tokens and not many more.

    `count` tells the tokens of a string; `pieces` come from `load_pieces`. All pieces are used once
    before one comes again.
    """
    source = random.Random(seed)
    salt = salt_of(seed)
    lines: list[str] = []
    counted = 0
    # Whole texts may merge tokens over line ends: one in a hundred more, and a look at the end.
    wanted = tokens + tokens // 100 + 1
    while True:
        while counted < wanted:
            order = source.sample(pieces, len(pieces))
            for piece in order:
                lines.append(f"[{salt}.{len(lines) + 1}] {piece}\n")
                counted += count(lines[-1])
                if counted >= wanted:
                    break
        text = "".join(lines)
        if (whole := count(text)) >= tokens:
            return text
        wanted += tokens - whole + 1


def _cut(sentence: str, stretch: int) -> list[str]:
    """The sentence in pieces that weigh at most `stretch`, cut at spaces where there are any."""
    pieces: list[str] = []
    start = space = weight = 0
    for place, character in enumerate(sentence):
        weight += 1 if character.isascii() else 4
        if character == " ":
            space = place
        if weight > stretch and place > start:
            end = space if space > start else place
            pieces.append(sentence[start:end].strip())
            start = end
            weight = sum(1 if c.isascii() else 4 for c in sentence[start : place + 1])
    pieces.append(sentence[start:].strip())
    return [piece for piece in pieces if piece]
