"""Our own words in an answer, in the question's language.

Holds every localised string of an answer and nothing else: no document text, no facts beyond the
numbers handed in.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.types import Coverage, NearestClause
from retrieval.types import Language

_OPEN_CLOSE: dict[Language, tuple[str, str]] = {"en": ("“", "”"), "zh": ("“", "”")}


def quoted(quote: str, place: str, marker: int) -> str:
    """One quote line: the quote in quotation marks, its place, its marker."""
    opening, closing = _OPEN_CLOSE["en"]
    return f"{opening}{quote}{closing}{place} [{marker}]"


def place(
    language: Language,
    *,
    clause: str | None,
    page: int | None,
    label: str | None,
    document: str | None,
) -> str:
    """Where a quote stands, in brackets, or "" when nothing is known about its place.

    An unknown page is left out, never invented. A printed label is given beside the physical page
    when the two differ.
    """
    parts: list[str] = []
    if document is not None:
        parts.append(f"《{document}》" if language == "zh" else document)
    if clause:
        parts.append(_clause(language, clause))
    if page is not None:
        parts.append(_page(language, page, label))
    if not parts:
        return ""
    return f"（{'，'.join(parts)}）" if language == "zh" else f" ({', '.join(parts)})"


def _clause(language: Language, number: str) -> str:
    named = any(mark in number for mark in "第条章款项") or number[:1].isalpha()
    if named:
        return number
    return f"第{number}条" if language == "zh" else f"Clause {number}"


def _page(language: Language, page: int, label: str | None) -> str:
    printed = label is not None and label != str(page)
    if language == "zh":
        return f"第{page}页，印刷页码{label}" if printed else f"第{page}页"
    return f"page {page}, printed {label}" if printed else f"page {page}"


def no_such_clause(language: Language, numbers: Sequence[str], documents: int) -> str:
    """Said when the question names a clause that the outline does not have."""
    names = [_clause(language, number) for number in numbers]
    if language == "zh":
        where = "本文件" if documents == 1 else "这些文件"
        return f"{where}中没有{'、'.join(names)}。"
    where = "This document has" if documents == 1 else "These documents have"
    return f"{where} no {' or '.join(_lower_first(name) for name in names)}."


def not_mentioned(language: Language, things: Sequence[str], documents: int) -> str:
    """Said when the question names something exactly that no document speaks of."""
    if language == "zh":
        where = "本文件" if documents == 1 else "这些文件"
        return f"{where}没有提到{'、'.join(f'“{thing}”' for thing in things)}。"
    where = "This document never mentions" if documents == 1 else "These documents never mention"
    return f"{where} {' or '.join(f'“{thing}”' for thing in things)}."


def nearest(language: Language, labels: Sequence[str]) -> str:
    """Introduces the clauses that came near."""
    if language == "zh":
        return f"最接近的条款：{'；'.join(labels)}。"
    return f"Nearest clauses: {'; '.join(labels)}."


def near(language: Language, clause: NearestClause) -> str:
    """One clause that came near: its number and title, and its page when known."""
    title = clause.heading or _clause(language, clause.clause or "")
    if clause.page is None:
        return title
    where = _page(language, clause.page, None)
    return f"{title}（{where}）" if language == "zh" else f"{title} ({where})"


def unread_pages(language: Language, pages: Sequence[int]) -> str:
    """Warns that pages have no readable text, so the answer may stand there."""
    shown = _ranges(pages)
    if language == "zh":
        return f"注意：第{shown}页没有可读文字，答案可能在其中。"
    noun = "page" if len(pages) == 1 else "pages"
    verb = "has" if len(pages) == 1 else "have"
    return f"Note: {noun} {shown} {verb} no readable text; the answer may stand there."


def still_reading(language: Language, coverage: Coverage) -> str:
    """Says that the answer was given before the document was read to its end."""
    read, total = coverage.read_tokens, coverage.total_tokens
    if language == "zh":
        return f"文件仍在读取中（{read}/{total} 个词元），答案可能会有补充。"
    return f"The document is still being read ({read} of {total} tokens); more may follow."


def deleted_meanwhile(language: Language, coverage: Coverage) -> str:
    """Says that the document was deleted before it was read to its end."""
    read, total = coverage.read_tokens, coverage.total_tokens
    if language == "zh":
        return f"文件在读完之前已被删除（已读 {read}/{total} 个词元），答案到此为止。"
    return f"The document was deleted before it was read ({read} of {total} tokens)."


def unfinished(language: Language) -> str:
    """Says that the model's words ended because others waited for the model."""
    if language == "zh":
        return "（等待的提问较多，说明未写完）"
    return " (unfinished, because many questions were waiting)"


def truncated(language: Language) -> str:
    """Says that the model's words were cut at the length limit."""
    return "（说明因长度限制被截断）" if language == "zh" else " (cut at the length limit)"


def stopped_repeating(language: Language) -> str:
    """Says that the model began to repeat itself and was stopped."""
    return (
        "（模型开始重复，已停止）"
        if language == "zh"
        else " (stopped: the model began to repeat itself)"
    )


def unconfirmed(language: Language) -> str:
    """Stands before a sentence of the model that failed its checks."""
    return "引文未能证实：" if language == "zh" else "Not confirmed by the quotes: "


def _lower_first(name: str) -> str:
    return name[:1].lower() + name[1:] if name.startswith("Clause ") else name


def _ranges(pages: Sequence[int]) -> str:
    ordered = sorted(set(pages))
    runs: list[tuple[int, int]] = []
    for page in ordered:
        if runs and page == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], page)
        else:
            runs.append((page, page))
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
