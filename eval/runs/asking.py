"""The loop of a run: every question gets one record with a status, whatever happens to it.

Questions of a document are asked together and the document is let go before the next. Knows neither
how replies come about nor what they are worth.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing

from app.errors import BadQuestion
from backend.errors import RequestTooLarge
from eval.errors import RunError, Unfit
from eval.metrics import failure_scores, score
from eval.runs.answerers import Answerer, Session
from eval.runs.folder import RunFolder
from eval.runs.sampling import Planned, Sample
from eval.types import EvalDocument, Question, Reply, SampleRecord, SampleStatus, Scores

_log = logging.getLogger(__name__)


def ask_all(
    sample: Sample,
    answerer: Answerer,
    folder: RunFolder,
    ended: Callable[[SampleRecord], None],
    *,
    skip: frozenset[str],
) -> None:
    """Asks what is not in `skip`; `ended` is told of each record after it is written.

    Raises RunError when the answerer died: the records up to there stay, and the question that
    killed it has one.
    """
    for planned in sample.opened(skip):
        with closing(_records(planned, answerer)) as records:
            for record in records:
                folder.add(record)
                ended(record)
                if not answerer.alive:
                    raise RunError(
                        f"The engine stopped at question {record.qid}: {record.error}. The same "
                        "command goes on with the next question."
                    )


def _records(planned: Planned, answerer: Answerer) -> Generator[SampleRecord, None, None]:
    document = planned.document
    with ExitStack() as stack:
        try:
            session = stack.enter_context(answerer.opened(document))
        except Exception as error:
            status, message = _failure(error, document.doc_id)
            for name, question in planned.questions:
                yield _record(planned, name, question, None, status, message)
            return
        for name, question in planned.questions:
            yield _asked(planned, name, question, session)


def _asked(planned: Planned, name: str, question: Question, session: Session) -> SampleRecord:
    document = planned.document
    try:
        reply = session.reply(question)
        scores = score(question, reply, document.text, document.lang)
    except Exception as error:
        status, message = _failure(error, name)
        return _record(planned, name, question, session.doc_tokens, status, message)
    return _record(planned, name, question, session.doc_tokens, "done", "", reply, scores)


def _failure(error: Exception, name: str) -> tuple[SampleStatus, str]:
    """How an error ends a sample, and its words. The trace goes to the log."""
    if isinstance(error, Unfit | RequestTooLarge | BadQuestion):
        return "unfit", str(error)
    _log.warning("%s failed", name, exc_info=error)
    return "failed", f"{type(error).__name__}: {error}"


def _record(
    planned: Planned,
    name: str,
    question: Question,
    doc_tokens: int | None,
    status: SampleStatus,
    error: str,
    reply: Reply | None = None,
    scores: Scores | None = None,
) -> SampleRecord:
    document = planned.document
    return SampleRecord(
        qid=name,
        doc_id=document.doc_id,
        dataset=planned.dataset,
        lang=document.lang,
        category=question.category,
        answerable=not question.is_impossible,
        doc_chars=len(document.text),
        doc_tokens=doc_tokens,
        depth=_depth(document, question),
        status=status,
        error=error,
        question=question.question,
        gold=question.answers,
        reply=reply,
        scores=_lost(document, question) if scores is None else scores,
    )


def _lost(document: EvalDocument, question: Question) -> Scores:
    """The scores of a sample without a reply."""
    return failure_scores(
        question.answers,
        document.lang,
        answerable=not question.is_impossible,
        spans=bool(question.spans),
        choice=bool(question.choices and question.answer),
    )


def _depth(document: EvalDocument, question: Question) -> float | None:
    """Where the middle of the first gold span lies, 0 to 1."""
    if not question.spans or not document.text:
        return None
    start, end = question.spans[0]
    return (start + end) / 2 / len(document.text)
