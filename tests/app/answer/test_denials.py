"""A question whether something is exclusive shows the clause that denies it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load_asking() -> ModuleType:
    """The documents and the scripted engine of `tests/app/test_ask.py`; tests are no package."""
    path = Path(__file__).parents[1] / "test_ask.py"
    spec = importlib.util.spec_from_file_location("asking_for_denials", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ASKING = load_asking()

DEALERSHIP = """DEALER AGREEMENT

1. Appointment
1.1 Harbour Mills appoints the Dealer as its dealer for Goods in the Region.
1.2 The appointment is nonexclusive, and Harbour Mills may sell Goods in the Region itself.
1.3 For Fenwick Stores alone the Dealer has the exclusive right to sell Goods.

2. Prices
Prices are stated in the list that Harbour Mills publishes each year.

3. Remedies
Replacement is the exclusive remedy for faulty Goods.

4. Term
This Agreement remains in force for two (2) years from 1 March 2024.
"""

CHINESE = """经销合同

第一条 授权
甲方授予乙方在白河省经销青石牌水泵的非独家权利，甲方可以自行销售。

第二条 例外
对白河商场，乙方享有独家供货的权利。

第三条 价格
水泵的价格以甲方每年公布的价目表为准。
"""


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        (DEALERSHIP, "Is the dealership exclusive?", "The appointment is nonexclusive"),
        (DEALERSHIP, "Does the Dealer have an exclusive right to sell?", "is nonexclusive"),
        (CHINESE, "乙方的经销权是独家的吗？", "非独家权利"),
    ],
)
def test_the_clause_that_denies_is_shown(text: str, question: str, words: str) -> None:
    _, answer = ASKING.run(ASKING.ScriptedEngine(), question, ASKING.loaded(text))
    assert any(words in citation.quote for citation in answer.citations)


@pytest.mark.parametrize("question", ["How long does the agreement last?", "Who sets the prices?"])
def test_other_questions_show_no_denial(question: str) -> None:
    _, answer = ASKING.run(ASKING.ScriptedEngine(), question, ASKING.loaded(DEALERSHIP))
    assert not any("nonexclusive" in citation.quote for citation in answer.citations)


def test_a_phrasing_that_drops_the_prefix_is_not_shown() -> None:
    engine = ASKING.ScriptedEngine("The Dealer was appointed on exclusive terms.")
    _, answer = ASKING.run(engine, "How is the Dealer appointed?", ASKING.loaded(DEALERSHIP))
    assert "exclusive terms" not in answer.answer
