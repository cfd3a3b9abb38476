"""Lists over documents of another language: what can't be looked for there is not said to be
absent."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from app.types import Answer, AskOptions


def _asking() -> ModuleType:
    path = Path(__file__).parent / "test_ask.py"
    spec = importlib.util.spec_from_file_location("asking_for_lists", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ASKING = _asking()
ENGLISH = (
    "1. Parts\nThe Supplier keeps flange rings for ten years.\n\n2. Law\nEnglish law governs.\n"
)
CHINESE = "第一条 法兰\n供方应当保存法兰十年。\n\n第二条 保险\n供方应当投保运输保险。\n"


def asked(question: str, *texts: tuple[str, str]) -> Answer:
    documents = [ASKING.loaded(text, name) for text, name in texts]
    events = list(
        ASKING.ask(
            ASKING.ScriptedEngine(), documents, question, request_id="r",
            options=AskOptions(phrase=False),
        )
    )  # fmt: skip
    answer: Answer = events[-1].answer
    return answer


def test_words_that_are_not_known_in_a_language_are_not_said_to_be_absent() -> None:
    answer = asked("Which clauses mention flange rings?", (CHINESE, "zh.txt"))
    assert "No clause was found to mention" not in answer.answer
    answer = asked("哪些条款提到开关柜？", (ENGLISH, "en.txt"))
    assert "没有找到提到" not in answer.answer


def test_a_list_names_the_documents_that_it_leaves_out() -> None:
    answer = asked("Which clauses mention flange rings?", (ENGLISH, "en.txt"), (CHINESE, "zh.txt"))
    assert [one.document for one in answer.citations] == ["en.txt"]
    assert answer.answer.endswith("\nIn another language, and not looked through for this: zh.txt.")


def test_what_the_vocabulary_knows_is_looked_for_in_both_languages() -> None:
    answer = asked("Which clauses mention insurance?", (CHINESE, "zh.txt"), (ENGLISH, "en.txt"))
    assert [one.document for one in answer.citations] == ["zh.txt"]
    assert "In another language" not in answer.answer


def test_a_lay_word_is_listed_by_its_wordings_in_the_other_language() -> None:
    text = "第一条 备件\n供方应当保存备品备件十年。\n\n第二条 转租\n承租人不得转租。\n"
    for wanted, number in (("spare parts", "第一条"), ("subletting", "第二条")):
        answer = asked(f"Which clauses are about {wanted}?", (text, "zh.txt"))
        assert [one.clause for one in answer.citations] == [number], wanted
