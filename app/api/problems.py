"""Every error as RFC 9457 `application/problem+json` with a code and the request's id.

Knows how the errors of router and validation map to HTTP; words, code and status of our own come
with them.
"""

from __future__ import annotations

import http
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.errors import AppError, ClientLeft, NoNewWork, TooManyQuestions
from app.events import AnswerFailed
from app.failures import as_app_error
from app.request_id import current_request_id
from backend.errors import BackendError
from retrieval.errors import RetrievalError

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 20
"""Of one request that are told."""
FAULT_CHARS = 300
"""Of a field's name, which may be as long as a body, and of what is wrong with it."""
RETRY_SECONDS = 5
"""Where nothing better is known."""
_ROUTER_CODES = {
    400: "bad_json",
    404: "not_found",
    405: "method_not_allowed",
    408: "body_timeout",
    413: "too_large",
    429: "too_many_bytes",
}
_WHOLE_BODY = "Send a JSON object with Content-Type: application/json"
_ROUTER_DETAILS = {
    400: "The request body can't be read as JSON in UTF-8.",
    404: "There is nothing at this address. The endpoints are listed at /docs.",
    405: "This address does not take this method; the Allow header lists the ones it takes.",
}


class Problem(JSONResponse):
    """One error on its way out. `extra` members stand beside the standard ones."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            problem_body(status, code, detail, extra=extra), status_code=status, headers=headers
        )


def problem_body(
    status: int, code: str, detail: str, *, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The members of RFC 9457 plus `code` and `request_id`."""
    return {
        "type": "about:blank",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": current_request_id(),
        **(extra or {}),
    }


def answer_problem(failed: AnswerFailed) -> Problem:
    """The problem of an answer that failed in its worker."""
    return Problem(failed.status, failed.code, failed.message, headers=_retry(failed.status))


def install(app: FastAPI) -> None:
    """Registers the handlers; unexpected errors are caught further out, by the request layer."""
    app.add_exception_handler(AppError, _app_error)
    app.add_exception_handler(RetrievalError, _lower_error)
    app.add_exception_handler(BackendError, _lower_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(ClientDisconnect, _client_left)


def unexpected(error: Exception) -> Problem:
    """A 500 that names only the request id; the trace stays in the log under the same id."""
    logger.error("unexpected error, request %s", current_request_id(), exc_info=error)
    return Problem(
        500,
        "internal_error",
        "Something went wrong on the server. The log has the details under this request_id.",
    )


def app_problem(error: AppError) -> Problem:
    """The problem of an error of the use cases; one that is ours goes to the log as well."""
    if error.status >= 500 and not isinstance(error, NoNewWork):
        logger.error("request %s: %s", current_request_id(), error, exc_info=error)
    seconds = error.retry_s if isinstance(error, TooManyQuestions) else None
    headers = _challenge(error) if error.status == 401 else _retry(error.status, seconds)
    return Problem(error.status, error.code, error.message, extra=error.details, headers=headers)


async def _app_error(_: Request, error: Exception) -> Problem:
    assert isinstance(error, AppError)
    return app_problem(error)


async def _lower_error(_: Request, error: Exception) -> Problem:
    assert isinstance(error, RetrievalError | BackendError)
    return app_problem(as_app_error(error))


def http_problem(error: HTTPException) -> Problem:
    """The problem of an error of the router or of the layers that read bodies."""
    status = error.status_code
    return Problem(
        status,
        _ROUTER_CODES.get(status, "http_error"),
        _ROUTER_DETAILS.get(status, str(error.detail)),
        headers=error.headers,
    )


async def _http_exception(_: Request, error: Exception) -> Problem:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, ClientDisconnect):
        # FastAPI takes it for a body that can't be read.
        return app_problem(ClientLeft())
    return http_problem(error)


async def _validation_error(_: Request, error: Exception) -> Problem:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(fault["type"] == "json_invalid" for fault in found):
        return Problem(400, "bad_json", "The request body is not valid JSON.")
    faults = [
        {
            "field": ".".join(str(part) for part in fault["loc"])[:FAULT_CHARS],
            "message": _WHOLE_BODY if fault["loc"] == ("body",) else fault["msg"][:FAULT_CHARS],
        }
        for fault in found[:MOST_FAULTS]
    ]
    detail = "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults)
    if len(found) > MOST_FAULTS:
        detail += f"; and {len(found) - MOST_FAULTS} more"
    return Problem(422, "invalid_request", detail, extra={"errors": faults})


async def _client_left(_: Request, error: Exception) -> Problem:
    return app_problem(ClientLeft())


def _challenge(error: AppError) -> dict[str, str]:
    """How to ask again with a key (RFC 6750); a request without one is told no error."""
    wrong = "" if error.code == "missing_api_key" else ', error="invalid_token"'
    return {"WWW-Authenticate": f'Bearer realm="fineprint"{wrong}'}


def _retry(status: int, seconds: int | None = None) -> dict[str, str] | None:
    return {"Retry-After": str(seconds or RETRY_SECONDS)} if status in (429, 503) else None
