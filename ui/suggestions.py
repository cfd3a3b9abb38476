"""Questions to begin with, in English and Chinese: for the samples, and for any other contract."""

from __future__ import annotations

from ui.strings import Lang

SUGGESTIONS: dict[Lang, tuple[str, ...]] = {
    "en": (
        "How can the contract be terminated?",
        "How long is the payment period?",
        "What limits the supplier's liability?",
    ),
    "zh": ("付款期限是多久？", "合同在什么情况下可以解除？", "违约金怎么计算？"),
}
SAMPLE_SUGGESTIONS: dict[str, tuple[str, ...]] = {
    "supply-agreement.en": (
        "How quickly must an invoice be paid?",
        "By how much can the prices rise in a year?",
        "What does a trip coil cost?",
        "What is the price of a 36 kV incoming panel?",
    ),
    "equipment-contract.zh": (
        "合同总价是多少？",
        "发生重大故障后多久要恢复生产？",
        "逾期交货的违约金怎么算？",
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
