"""Saves how answers end, so that they are found again.

Whatever the database says, those who follow hear that an answer is over: an end that it does not
take is told all the same and kept until it does. An answer whose conversation was deleted meanwhile
is saved nowhere and ends as cancelled.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from functools import partial

from app.answer_ends import stopped
from app.answer_run import CANCELLED, AnswerRun
from app.conversations import Conversations
from app.errors import AppError, NotFound
from app.events import AnswerCompleted, AnswerFailed
from app.request_id import serving
from app.types import Answer
from app.unwritten import Unwritten, may_pass
from retrieval.types import DocumentWarning

logger = logging.getLogger(__name__)


class AnswerSaving:
    """Thread-safe. `unwritten` has the ends that the database did not take."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self.unwritten = Unwritten()

    def completed(self, run: AnswerRun, answer: Answer) -> AnswerCompleted | AnswerFailed:
        """The last event of a run with this answer, which is saved if it can be."""
        save = partial(self._conversations.save_answer, run.conversation_id, run.id, answer)
        try:
            save()
        except NotFound:
            return self._deleted(run)
        except Exception as error:
            # The reader still gets the answer, and is told that it may not be found again.
            logger.error("answer %s could not be saved", run.id, exc_info=error)
            reason = str(error) if isinstance(error, AppError) else "the log has the details."
            reason = f"This answer could not be saved: {reason}"
            if self._keep(run, error, save):
                reason += " It is saved as soon as that is possible."
            unsaved = DocumentWarning("not_saved", reason)
            answer = dataclasses.replace(answer, warnings=(*answer.warnings, unsaved))
        return AnswerCompleted(answer)

    def failed(self, run: AnswerRun, event: AnswerFailed) -> AnswerFailed:
        """The last event of a run that has no answer, which is saved if it can be."""
        save = self._failing(run, event)
        try:
            save()
        except NotFound:
            return self._deleted(run)
        except Exception as error:
            # Whatever the database says: those who follow must hear that it is over.
            logger.error("the end of answer %s could not be saved", run.id, exc_info=error)
            self._keep(run, error, save)
        return event

    def failed_later(self, run: AnswerRun, event: AnswerFailed) -> AnswerFailed:
        """The same for whoever can't wait for the database: it is left to `unwritten`."""
        save = partial(self._save_late, run, self._failing(run, event))
        self.unwritten.keep(run.id, save)
        return event

    def _failing(self, run: AnswerRun, event: AnswerFailed) -> Callable[[], object]:
        return partial(
            self._conversations.fail_answer,
            run.id,
            event.code,
            event.message,
            status="cancelled" if event.code == CANCELLED else "failed",
            content=run.text(),
        )

    def _save_late(self, run: AnswerRun, save: Callable[[], object]) -> None:
        try:
            save()
        except NotFound:
            self._deleted(run)
        except Exception as error:
            with serving(run.timeline.request_id):
                logger.error("the end of answer %s could not be saved", run.id, exc_info=error)
            # From now on without a line of the log for each try.
            self._keep(run, error, save)
            raise

    def _deleted(self, run: AnswerRun) -> AnswerFailed:
        logger.info("the conversation of answer %s was deleted before its end", run.id)
        run.deleted = True
        run.stop(CANCELLED)
        return stopped(run)

    def _keep(self, run: AnswerRun, error: Exception, save: Callable[[], object]) -> bool:
        """Whether an end that failed to be saved may be saved later."""
        if may_pass(error):
            self.unwritten.keep(run.id, save)
        return run.id in self.unwritten
