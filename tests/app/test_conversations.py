"""Conversations: saved whole, listed, ended once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from app.conversations import TITLE_CHARS
from app.db.models import CitationRow, MessageRow
from app.errors import Conflict, DatabaseBusy, NotFound
from app.services import Services
from app.types import (
    Answer,
    AnswerUsage,
    Check,
    Citation,
    Coverage,
    NearestClause,
    PageBox,
    Timings,
    Turn,
)
from retrieval.types import DocumentWarning

Start = Callable[..., Services]

CITATION = Citation(
    quote="违约金为合同总价的5%",
    document_id="doc_1",
    document="采购合同.pdf",
    page=3,
    page_label="iii",
    start_char=10,
    end_char=21,
    clause="第二条",
    boxes=(PageBox(3, 0.1, 0.2, 0.5, 0.25), PageBox(3, 0.1, 0.26, 0.3, 0.3)),
    verified=True,
)
ANSWER = Answer(
    answer="违约金为合同总价的5%。",
    status="answered",
    language="zh",
    citations=(
        CITATION,
        replace(
            CITATION, document_id="doc_2", boxes=(), page=None, role="amendment", replaced=True
        ),
    ),
    checks=(
        Check("number", "5%", True, 9, 11),
        Check("quote", "违约金", False, 0, 3, "why"),
        Check("computed", "5%", True, 9, 11, operands=("2%", "3%")),
    ),
    coverage=Coverage(100, 200),
    timings=Timings(1, 2, 3, 4, 5, 6, 7),
    usage=AnswerUsage(10, 5, 0, 7),
    finish_reason="stop",
    nearest=(NearestClause("3", "Price", 2, 5, 9),),
    warnings=(DocumentWarning("scan", "Page 4 is a picture.", (4,)),),
    standalone_question="违约金是多少？",
)


def test_an_answer_comes_back_as_it_was(start: Start) -> None:
    conversations = start().conversations
    conversation = conversations.create(document_ids=["doc_1", "doc_2"])
    begun = conversations.start_answer(conversation.id, "ans_1", question="违约金是多少？")
    assert (begun.id, begun.status, begun.answer) == ("ans_1", "in_progress", None)
    saved = conversations.save_answer(conversation.id, "ans_1", ANSWER)
    assert saved.answer == ANSWER
    question, answer = conversations.messages(conversation.id)
    assert (question.role, question.content) == ("user", "违约金是多少？")
    assert answer == saved and answer.finished_at is not None
    assert conversations.get(conversation.id).title == "违约金是多少？"
    assert conversations.get(conversation.id).document_ids == ("doc_1", "doc_2")
    assert conversations.turns(conversation.id) == (Turn("违约金是多少？", ANSWER.answer),)


def test_conversations_of_one_document_are_told_apart_by_whole_ids(start: Start) -> None:
    conversations = start().conversations
    one = conversations.create(document_ids=["doc_1"])
    two = conversations.create(document_ids=["doc_12", "doc_1"])
    other = conversations.create(document_ids=["doc_12"], owner="Alice")
    conversations.create()

    def found(document_id: str, owner: str | None = None) -> list[str]:
        page = conversations.list(document_id=document_id, owner=owner)
        assert page.total == len(page.data)
        return [entry.id for entry in page.data]

    assert found("doc_1") == [two.id, one.id]
    assert found("doc_12") == [other.id, two.id]
    assert found("doc_12", "Alice") == [other.id]
    for none in ("doc_", "DOC_1", "doc%1", "", '"', 'doc_12", "doc_1'):
        assert found(none) == []


def test_each_answer_stands_behind_its_question_however_many_are_asked_at_once(
    start: Start,
) -> None:
    conversations = start().conversations
    conversation = conversations.create()

    def ask(number: int) -> None:
        conversations.start_answer(conversation.id, f"ans_{number}", question=str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(24)))
    messages = conversations.messages(conversation.id)
    asked, given = messages[::2], messages[1::2]
    assert [one.id for one in given] == [f"ans_{one.content}" for one in asked]
    assert len(given) == 24


def test_a_title_that_is_cut_says_so(start: Start) -> None:
    conversations = start().conversations
    whole = "x" * TITLE_CHARS
    for question, title in ((whole, whole), (f"{whole}y", f"{whole[:-1]}…")):
        conversation = conversations.create()
        conversations.start_answer(conversation.id, question=question)
        assert conversations.get(conversation.id).title == title


def test_an_answer_without_a_start(start: Start) -> None:
    conversations = start().conversations
    conversation = conversations.create()
    conversations.start_answer(conversation.id, question="q")
    assert conversations.save_answer(conversation.id, "ans_9", ANSWER).answer == ANSWER
    with pytest.raises(NotFound):
        conversations.save_answer("conv_none", "ans_10", ANSWER)


def test_an_answer_ends_once(start: Start) -> None:
    conversations = start().conversations
    conversation = conversations.create()
    one = conversations.start_answer(conversation.id, question="q").id
    failed = conversations.fail_answer(one, "engine_failed", "out of memory", content="The pri")
    assert (failed.status, failed.error_code, failed.content) == (
        "failed",
        "engine_failed",
        "The pri",
    )
    for again in (
        lambda: conversations.save_answer(conversation.id, one, ANSWER),
        lambda: conversations.fail_answer(one, "x", "y"),
    ):
        with pytest.raises(Conflict, match="ended as failed"):
            again()
    two = conversations.start_answer(conversation.id, question="q").id
    assert conversations.fail_answer(two, "cancelled", "", status="cancelled").status == "cancelled"
    with pytest.raises(NotFound):
        conversations.fail_answer("ans_none", "x", "y")
    assert conversations.turns(conversation.id) == ()


def test_an_end_that_is_committed_is_not_read_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is gone right after the commit makes no saved answer an unsaved one."""
    services = start()
    conversations = services.conversations
    conversation = conversations.create()
    one, two = (conversations.start_answer(conversation.id, question="q").id for _ in range(2))

    def gone() -> None:
        raise DatabaseBusy("away")

    with monkeypatch.context() as patch:
        patch.setattr(services.database, "read", gone)
        assert conversations.save_answer(conversation.id, one, ANSWER).answer == ANSWER
        assert conversations.fail_answer(two, "x", "y").error_message == "y"
    assert [item.status for item in conversations.messages(conversation.id)[1::2]] == [
        "completed",
        "failed",
    ]


def test_saved_in_one_transaction(start: Start) -> None:
    """An answer whose citations can't be stored is not stored either."""
    services = start()
    conversation = services.conversations.create()
    answer_id = services.conversations.start_answer(conversation.id, question="q").id
    broken = replace(CITATION, quote=None)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="(?i)null"):
        services.conversations.save_answer(
            conversation.id, answer_id, replace(ANSWER, citations=(CITATION, broken))
        )
    assert services.conversations.message(answer_id).status == "in_progress"
    with services.database.read() as session:
        assert session.execute(select(func.count()).select_from(CitationRow)).scalar_one() == 0


def test_deleted_with_everything(start: Start) -> None:
    services = start()
    conversation = services.conversations.create()
    services.conversations.save_answer(conversation.id, "ans_1", ANSWER)
    services.conversations.delete(conversation.id)
    with services.database.read() as session:
        for table in (MessageRow, CitationRow):
            assert session.execute(select(func.count()).select_from(table)).scalar_one() == 0
    for call in (
        services.conversations.get,
        services.conversations.messages,
        services.conversations.delete,
    ):
        with pytest.raises(NotFound):
            call(conversation.id)


def test_owners_do_not_meet(start: Start) -> None:
    conversations = start().conversations
    mine, theirs = conversations.create(), conversations.create(owner="someone")
    conversations.save_answer(theirs.id, "ans_1", ANSWER)
    assert [item.id for item in conversations.list(owner="local").data] == [mine.id]
    for call in (
        lambda: conversations.get(theirs.id, owner="local"),
        lambda: conversations.messages(theirs.id, owner="local"),
        lambda: conversations.message("ans_1", owner="local"),
        lambda: conversations.delete(theirs.id, owner="local"),
        lambda: conversations.list(after=theirs.id, owner="local"),
    ):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(NotFound) as refused:
        conversations.message("ans_1", owner="local")
    assert refused.value.message == "There is no answer ans_1.", "and no word of a conversation"


def test_lists(start: Start) -> None:
    conversations = start().conversations
    ids = [conversations.create(title=str(number)).id for number in range(4)]
    page = conversations.list(limit=3)
    assert ([item.id for item in page.data], page.has_more, page.total) == (ids[:0:-1], True, 4)
    page = conversations.list(limit=3, after=ids[2], order="asc")
    assert ([item.id for item in page.data], page.has_more) == (ids[3:], False)


def test_nul_is_stored_nowhere(start: Start) -> None:
    conversations = start().conversations
    conversation = conversations.create(title="a\0b")
    assert conversation.title == "ab"
    conversations.start_answer(conversation.id, question="what\0?")
    assert conversations.messages(conversation.id)[0].content == "what?"
