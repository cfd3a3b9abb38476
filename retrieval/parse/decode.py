"""Finds the encoding of text bytes: UTF-8, UTF-16, GB18030 or Big5 by rule, others by statistics.

It does not know file types, and it never guesses a Chinese encoding for bytes that are valid UTF-8.
"""

from __future__ import annotations

import codecs
import re

from retrieval.errors import Undecodable

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The commonest characters of Chinese contracts and prose, both scripts. In a text decoded with the
# wrong table they occur by accident only.
_FREQUENT = frozenset(
    "的一是不了在有和人这這中大为為上个個国國我以要他时時来來用们們生到作地于於出就分对對成会會可主发發年"
    "同方甲乙合同约約定条條款第应應当當日内內由或及其本与與按规規付双雙法者之权權者责責任行合工程公司"
    "三二四五十，。、；：（）"
)
_WORTH_JUDGING = 4000
_MIN_PLAUSIBLE = 0.55


def decode(data: bytes, name: str, *, declared: str | None = None) -> tuple[str, str]:
    """The text of `data` and the encoding used, a Python codec name.

    `declared` is what the file says about itself (an HTML meta tag): used when it decodes without
    error. Raises Undecodable with the encodings tried.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return data.decode(encoding), encoding
            except UnicodeDecodeError as error:
                raise Undecodable(
                    f"“{name}” says it is {encoding} but byte {error.start} is not: the file is "
                    "cut off or mixed. Save it again as UTF-8."
                ) from error
    wide = utf16_without_bom(data)
    if wide is not None:
        return data.decode(wide), wide
    tried = ["utf-8"]
    text = _strictly(data, "utf-8")
    if text is not None:
        return text, "utf-8"
    if declared is not None and (text := _declared(data, declared)) is not None:
        return text, declared
    if _single_bytes(data):
        tried.append("cp1252")
        text = _strictly(data, "cp1252")
        if text is not None:
            return text, "cp1252"
    scores: list[tuple[float, str, str]] = []
    for encoding in ("gb18030", "big5", "big5hkscs", "utf-16-le", "utf-16-be"):
        tried.append(encoding)
        text = _strictly(data, encoding)
        if text is not None:
            scores.append((plausibility(text), encoding, text))
    if scores:
        # max() keeps the first of equals, so the order above decides ties.
        score, encoding, text = max(scores, key=lambda item: item[0])
        if score >= _MIN_PLAUSIBLE:
            return text, encoding
    tried.append("charset-normalizer's detection")
    return _by_statistics(data, name, tried)


def utf16_without_bom(data: bytes) -> str | None:
    """ "utf-16-le" or "utf-16-be" when the bytes are UTF-16 without a mark, else None.

    Two signs: NUL bytes nearly all on one side of the pairs, or, without any Latin character, text
    that decodes to plausible Chinese while it is not valid UTF-8.
    """
    head = data[:65536]
    if len(data) % 2 or len(data) < 2:
        return None
    left, right = head[0::2].count(0), head[1::2].count(0)
    if left + right >= max(1, len(head) // 50) and max(left, right) > 8 * min(left, right):
        encoding = "utf-16-be" if left > right else "utf-16-le"
        # A stray NUL in short Latin text has no partner that is plausible as UTF-16.
        text = _strictly(data, encoding)
        if text is not None and (max(left, right) * 4 > len(head) or plausibility(text) > 0.5):
            return encoding
    if _strictly(data, "utf-8") is None:
        best = max(
            (
                (plausibility(text), encoding)
                for encoding in ("utf-16-le", "utf-16-be", "gb18030")
                if (text := _strictly(data, encoding)) is not None
            ),
            default=(0.0, ""),
        )
        if best[0] > 0.8 and best[1].startswith("utf-16"):
            return best[1]
    return None


def plausibility(text: str) -> float:
    """How much `text` looks like Chinese prose, 0 to about 1.5: the share of common characters
    among its non-ASCII ones, plus half the share of the most frequent ones (at most 0.5)."""
    sample = [char for char in text[:_WORTH_JUDGING] if ord(char) > 127]
    if not sample:
        return 0.0
    common = sum(_is_common(char) for char in sample) / len(sample)
    frequent = sum(char in _FREQUENT for char in sample) / len(sample)
    return common + min(0.5, frequent)


def _is_common(char: str) -> bool:
    """In the frequent half of GB2312 or of Big5, or punctuation of Chinese text."""
    if "\u3000" <= char <= "\u301f" or "\uff01" <= char <= "\uff5e" or char in "“”‘’—…·●○①②③④⑤":
        return True
    if not "\u4e00" <= char <= "\u9fff":
        return False
    try:
        if 0xB0 <= char.encode("gb2312")[0] <= 0xD7:
            return True
    except UnicodeEncodeError:
        pass
    try:
        return 0xA4 <= char.encode("big5")[0] <= 0xC6
    except UnicodeEncodeError:
        return False


def _single_bytes(data: bytes) -> bool:
    """Whether bytes over 127 mostly stand alone among ASCII, as accents and curly quotes do.

    In GB18030 and Big5 prose they come in pairs and long runs.
    """
    runs = re.findall(rb"[\x80-\xff]+", data[:65536])
    lone = sum(len(run) == 1 for run in runs)
    return lone * 2 > len(runs)


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _declared(data: bytes, declared: str) -> str | None:
    try:
        codec = codecs.lookup(declared).name
    except LookupError:
        return None
    # Pages that say GB2312 use characters of its supersets.
    return _strictly(data, "gb18030" if codec in ("gb2312", "gbk") else codec)


def _by_statistics(data: bytes, name: str, tried: list[str]) -> tuple[str, str]:
    # Only odd files come here, so its start-up time is not paid for the others.
    from charset_normalizer import from_bytes

    best = from_bytes(data[:1_000_000], threshold=0.15).best()
    if best is not None and (text := _strictly(data, best.encoding)) is not None:
        return text, best.encoding
    raise Undecodable(
        f"“{name}” can't be decoded as text; tried {', '.join(tried)}. Save it as UTF-8 and "
        "upload it again."
    )
