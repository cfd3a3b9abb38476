"""Our own words around lists, attached quotes, computed figures and several documents, in the
question's language. Like `wording`, it holds no document text and no facts beyond what is handed
in.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.answer import wording
from app.types import Citation, CitationRole, Coverage, NearestClause
from retrieval.facts import FactKind
from retrieval.types import Language

_KINDS: dict[FactKind, tuple[str, str]] = {
    "date": ("a date", "日期"),
    "amount": ("an amount of money", "金额"),
    "percent": ("a percentage", "百分比"),
    "duration": ("a length of time", "期限"),
}
_LABELS: dict[CitationRole, tuple[str, str]] = {
    "answer": ("", ""),
    "reference": ("Referred to: ", "所引条款："),
    "definition": ("Definition: ", "定义："),
    "amendment": ("Amendment: ", "修改："),
}

_REPLACED = ("Earlier text, amended since: ", "原文（已被修改）：")


def quote_line(language: Language, citation: Citation, number: int, *, several: bool) -> str:
    """The line of one citation: why it is shown, its quote, its place, its marker. `several`: more
    than one document was asked, so that the document is named."""
    place = wording.place(
        language,
        clause=citation.clause,
        page=citation.page,
        label=citation.page_label,
        document=citation.document if several else None,
    )
    label = _REPLACED if citation.replaced else _LABELS[citation.role]
    return label[language == "zh"] + wording.quoted(citation.quote, place, number)


def listing(
    language: Language,
    wanted: str,
    kind: FactKind | None,
    *,
    places: int,
    mentions: int,
    shown: tuple[int, int],
) -> str:
    """How many places there are and which of them are shown, counted from 1."""
    first, last = shown
    if language == "zh":
        what = f"含有{_KINDS[kind][1]}" if kind else f"提到“{wanted}”"
        unit = "句" if kind else "处条款"
        if not places:
            return f"没有找到{what}的条款。"
        count = f"（共出现{mentions}次）" if mentions > places else ""
        head = f"共有{places}{unit}{what}{count}"
        if (first, last) == (1, places):
            return f"{head}，全部列出如下："
        more = f"；要看其余的，请在问题后加“从第{last + 1}处起”" if last < places else ""
        return f"{head}，以下是第{first}至{last}处{more}："
    what = f"hold {_KINDS[kind][0]}" if kind else f"mention “{wanted}”"
    unit = "sentence" if kind else "clause"
    if not places:
        return f"No {unit} was found to {what}."
    verb = (
        what if places != 1 else what.replace("hold", "holds", 1).replace("mention", "mentions", 1)
    )
    count = f" ({mentions} places)" if mentions > places else ""
    head = f"{places:,} {unit}{'' if places == 1 else 's'} {verb}{count}"
    if (first, last) == (1, places):
        return f"{head}; {'it is shown here' if places == 1 else 'all of them are shown'}:"
    more = f"; to see the rest, add “from {last + 1}” to the question" if last < places else ""
    return f"{head}; numbers {first} to {last} are shown{more}:"


def not_found(language: Language, read: Coverage, documents: int, searched: tuple[int, int]) -> str:
    """The answer when the evidence does not hold one. `searched`: characters and pages (0: the
    format has none) of the text that was searched."""
    characters, pages = searched
    # Rounded down: 100% only when everything was read.
    share = 100 * read.read_tokens // max(1, read.total_tokens)
    if language == "zh":
        where = "本文件" if documents == 1 else f"这{documents}份文件"
        extent = f"（{characters:,}字" + (f"，{pages}页）" if pages else "）")
        return (
            f"{where}中没有找到答案。已检索全文{extent}；"
            f"模型已读 {read.read_tokens}/{read.total_tokens} 个词元（{share}%）。"
        )
    where = "this document" if documents == 1 else f"these {documents} documents"
    extent = f" ({characters:,} characters" + (f", {pages} pages)" if pages else ")")
    return (
        f"Not found in {where}. The whole text was searched{extent}; the model has read "
        f"{read.read_tokens} of {read.total_tokens} tokens ({share}%)."
    )


def near(language: Language, clause: NearestClause, *, several: bool) -> str:
    """One clause that came near; `several`: more than one document was asked."""
    named = wording.near(language, clause)
    if not several:
        return named
    return f"《{clause.document}》{named}" if language == "zh" else f"{clause.document}: {named}"


def unread_pages(language: Language, pages: Sequence[int], document: str | None) -> str:
    """Warns that pages have no readable text; `document` is named when there are several."""
    said = wording.unread_pages(language, pages)
    if document is None:
        return said
    return f"《{document}》{said}" if language == "zh" else f"{document}: {said}"


def unanswered_parts(language: Language, parts: Sequence[str]) -> str:
    """Which parts of a question nothing answers by itself."""
    listed = "、".join(f"“{part}”" for part in parts)
    if language == "zh":
        return f"未找到单独回答{listed}的内容。"
    listed = " or ".join(f"“{part}”" for part in parts)
    return f"Nothing was found that answers {listed} by itself."


def silent_documents(language: Language, names: Sequence[str]) -> str:
    """Names the documents in which nothing was found, when others answer."""
    if language == "zh":
        return f"以下文件中没有找到答案：{'、'.join(f'《{name}》' for name in names)}。"
    return f"Nothing was found in: {', '.join(names)}."


def not_looked_through(language: Language, names: Sequence[str]) -> str:
    """Names the documents that a list leaves out: the words for it are not known in their
    language."""
    if language == "zh":
        return f"以下文件为另一种语言，未能逐条查找：{'、'.join(f'《{name}》' for name in names)}。"
    return f"In another language, and not looked through for this: {', '.join(names)}."


def page_warnings(language: Language, messages: Sequence[str]) -> str:
    """Repeats what was wrong with the pages that are quoted."""
    head = "引用页的提示：" if language == "zh" else "About the pages quoted: "
    return head + " ".join(messages)


def computed(language: Language, expression: str, *, calendar: bool) -> str:
    """One computed figure with its operands. `calendar`: days were counted or added."""
    if language == "zh":
        remark = "（按日历推算；首日、末日是否计入以合同约定为准）" if calendar else ""
        return f"计算：{expression}{remark}"
    remark = " (by the calendar; whether first and last day count, the contract says)"
    return f"Computed: {expression}{remark if calendar else ''}"
