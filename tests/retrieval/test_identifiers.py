"""Things named exactly in a question of which the document knows only others."""

from __future__ import annotations

import pytest

from retrieval.identifiers import absent_things

PRICES = """Schedule 2 Prices
Item Description Price
K-11 Pump 5 kW, 40 l 1,200.00
K-12 Pump 7.5 kW, 60 l 1,450.00
The first instalment is due on signing and the second instalment on delivery.
The warranty period is 36 months. "Pump" means an item of this Schedule.
Marlow Works receives the pumps.
"""
LINES = """第一条 第一批货物应于三月交付，第二批货物应于五月交付。
第一条生产线和第二条生产线由乙方安装。
第三条 设备额定电压为10千伏和20千伏。共分四期付款，第一期款为预付款。
"""


@pytest.mark.parametrize(
    ("text", "question", "absent"),
    [
        (PRICES, "What does a 36 kW pump cost?", ("36 kW",)),
        (PRICES, "What does a 5 kW pump cost?", ()),
        (PRICES, "What does a 40 l tank cost?", ()),
        (PRICES, "Is more than 36 kW allowed?", ()),
        (PRICES, "What does a 12 bar valve cost?", ()),
        (PRICES, "When is the third instalment due?", ("third instalment",)),
        (PRICES, "When is the second instalment due?", ()),
        (PRICES, "May a third party use the pump?", ()),
        (PRICES, "How much is K-13?", ("K-13",)),
        (PRICES, "How much is K-12?", ()),
        (PRICES, "Is COVID-19 an excuse?", ()),
        (PRICES, 'What does "Permitted Lien" mean?', ("Permitted Lien",)),
        (PRICES, 'What does "Pumps" mean?', ()),
        (PRICES, 'Highlight the parts related to "Permitted Lien".', ()),
        (PRICES, "What is sent to Harrow Docks each week?", ("Harrow Docks",)),
        (PRICES, "What is sent to Marlow Works each week?", ()),
        (PRICES, "Does the contract speak of Force Majeure at all?", ()),
        (PRICES, "What Is Sent To Harrow Docks Each Week?", ()),
        (LINES, "第三批货物什么时候交付？", ("第三批",)),
        (LINES, "第二批货物什么时候交付？", ()),
        (LINES, "第三条生产线由谁安装？", ("第三条生产线",)),
        (LINES, "第三条规定了什么？", ()),
        (LINES, "第三期款什么时候付？", ()),
        (LINES, "第三方可以使用设备吗？", ()),
        (LINES, "35千伏的设备多少钱？", ("35千伏",)),
        (LINES, "10千伏的设备多少钱？", ()),
        (LINES, "电压超过35千伏怎么办？", ()),
    ],
)
def test_only_a_missing_one_of_a_known_kind_is_absent(
    text: str, question: str, absent: tuple[str, ...]
) -> None:
    assert absent_things(text, question) == absent
