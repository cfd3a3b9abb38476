"""Errors of the engine and of retrieval as errors of the use cases: one rule for all doors, for
what fails at once and for what fails in a worker.

Does not know HTTP or what was asked.
"""

from __future__ import annotations

from app.errors import AppError, NotSearchable, TooLarge, TooManyQuestions, Unavailable
from backend.errors import BackendError, EngineBusy, EngineClosed, RequestTooLarge
from retrieval.errors import ParseError, RetrievalError


def as_app_error(error: AppError | RetrievalError | BackendError) -> AppError:
    """The error as it is told, with its code and status."""
    match error:
        case AppError():
            return error
        case EngineBusy():
            return TooManyQuestions(str(error), code="engine_busy")
        case EngineClosed():
            return Unavailable(str(error), code="engine_closed")
        case RequestTooLarge():
            return TooLarge(str(error))
        case BackendError():
            return Unavailable(str(error), code="engine_error")
        case ParseError():
            return NotSearchable(str(error), code=error.code)
        case _:
            return NotSearchable(str(error))
