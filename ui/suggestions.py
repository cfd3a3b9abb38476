"""Questions to begin with, in English and Chinese: for the samples, and for any other contract."""

from __future__ import annotations

from ui.strings import Lang

SUGGESTIONS: dict[Lang, tuple[str, ...]] = {
    "en": (
        "How can the contract be terminated for convenience?",
        "Within how many days must invoices be paid?",
        "Which law governs the contract?",
    ),
    "zh": ("提前多少日通知可以解除合同？", "质量保证期是多久？", "适用哪国法律？"),
}
SAMPLE_SUGGESTIONS: dict[str, tuple[str, ...]] = {
    "supply-agreement.en": (
        "How quickly must an invoice be paid?",
        "How large is the performance bond?",
        "What does a trip coil cost?",
        "What is the price of a 36 kV incoming panel?",
    ),
    "equipment-contract.zh": (
        "合同总价是多少？",
        "发生重大故障后多久要恢复生产？",
        "逾期交货每逾期一日支付多少违约金？",
        "第三条生产线什么时候交货？",
    ),
}
"""By the stem of a sample's file name. The last one of each has no answer in its contract."""


def suggestions(name: str, language: str | None) -> tuple[str, ...]:
    """Questions to begin with, for a document of this name and language."""
    for stem, questions in SAMPLE_SUGGESTIONS.items():
        if name.rpartition(".")[0] == stem:
            return questions
    return SUGGESTIONS["zh" if language == "zh" else "en"]
