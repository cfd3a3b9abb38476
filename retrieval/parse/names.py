"""Turns the name a client sent into one that is safe to show. It is display-only: nothing may be
stored or opened under it. Knows nothing of the file itself."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

MAX_CHARS = 200
_SEPARATORS = re.compile(r"[/\\\u2044\u2215\u29f5\u29f8\u2571\u2572\u29f9\ufe68]")
_WINDOWS_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


def display_name(raw: str) -> str:
    """The last path part of `raw` without controls, at most 200 characters; never empty.

    Look-alike separators (full-width, division slash) count as separators, and so do escaped ones;
    full-width brackets and letters of an honest name are kept as they are. A name with nothing left
    becomes "document".
    """
    name = unicodedata.normalize("NFC", _unescaped(raw))
    name = "".join(char for char in name if _printable(char))
    # A full-width slash or dot folds to the ASCII one under NFKC, so it is treated as that.
    name = "".join(
        folded if (folded := unicodedata.normalize("NFKC", char)) in ("/", "\\", ".") else char
        for char in name
    )
    name = _SEPARATORS.split(name)[-1].strip().strip(":").strip()
    name = re.sub(r"\s+", " ", name)
    if not name.strip(". "):
        return "document"
    name = name.rstrip(". ")
    if _WINDOWS_DEVICES.fullmatch(name):
        name = f"_{name}"
    return _shortened(name)


def extension(name: str) -> str:
    """The lower-case ending of a display name with its dot, or an empty string."""
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem and ending else ""


def _unescaped(raw: str) -> str:
    """Resolves percent escapes of separators, dots and controls only: "100%25.pdf" stays."""
    return re.sub(
        r"%(?:2f|5c|2e|0[0-9a-f]|1[0-9a-f]|7f)",
        lambda match: unquote(match.group()),
        raw,
        flags=re.IGNORECASE,
    )


def _printable(char: str) -> bool:
    # Cc controls, Cf bidirectional overrides and joiners, Cs lone surrogates, Zl/Zp line ends.
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")


def _shortened(name: str) -> str:
    if len(name) <= MAX_CHARS:
        return name
    ending = extension(name)
    if len(ending) > 10:
        ending = ""
    return name[: MAX_CHARS - len(ending) - 1].rstrip(". ") + "…" + ending
