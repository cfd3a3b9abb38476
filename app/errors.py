"""The errors of the use cases. Each has a stable `code` for programs, an HTTP `status` for the
doors and a message that says what is wrong and what to do.

    AppError
    ├── BadRequest          400  BadName, BadSettings, ClientLeft, UnknownModel;
    │                       422  BadQuestion, BadParameter
    ├── Unauthorized        401
    ├── Forbidden           403
    ├── NotFound            404
    ├── Conflict            409  NotReady
    ├── TooLarge            413  TooLargeUpload
    ├── UnsupportedUpload   415
    ├── EmptyUpload         422
    ├── NotSearchable       422
    ├── TooManyQuestions    429
    ├── Unavailable         503  DatabaseBusy, AlreadyServing, ModelUnavailable, NoNewWork
    ├── TimedOut            504
    ├── StorageFull         507
    └── Corrupted           500

Does not know HTTP beyond the number.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "AlreadyServing",
    "AppError",
    "BadName",
    "BadParameter",
    "BadQuestion",
    "BadRequest",
    "BadSettings",
    "ClientLeft",
    "Conflict",
    "Corrupted",
    "DatabaseBusy",
    "EmptyUpload",
    "Forbidden",
    "ModelUnavailable",
    "NoNewWork",
    "NotFound",
    "NotReady",
    "NotSearchable",
    "StorageFull",
    "TimedOut",
    "TooLarge",
    "TooLargeUpload",
    "TooManyQuestions",
    "Unauthorized",
    "Unavailable",
    "UnknownModel",
    "UnsupportedUpload",
]


class AppError(Exception):
    """Base of all errors a user can meet in the use cases. `details` are facts for programs that
    the doors pass on beside the message."""

    code = "internal"
    status = 500

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        if code is not None:
            self.code = code


class BadRequest(AppError):
    """The request itself is wrong; sending it again unchanged will not help."""

    code = "bad_request"
    status = 400


class BadQuestion(BadRequest):
    """A question that is empty or longer than the limit."""

    code = "bad_question"
    status = 422


class BadParameter(BadRequest):
    """A parameter of a request that makes no sense with this document."""

    code = "bad_parameter"
    status = 422


class BadName(BadRequest):
    """A file name that can't be shown or told apart."""

    code = "bad_name"


class BadSettings(BadRequest):
    """A setting that is unknown or out of range."""

    code = "bad_settings"


class ClientLeft(BadRequest):
    """Nobody is there any more to be answered."""

    code = "client_left"

    def __init__(self) -> None:
        super().__init__("The client closed the connection.")


class UnknownModel(BadRequest):
    """A model name or path that says nothing."""

    code = "unknown_model"


class Unauthorized(AppError):
    """No API key, or none that opens this server."""

    code = "invalid_api_key"
    status = 401


class Forbidden(AppError):
    """The key is good, but not for this."""

    code = "forbidden"
    status = 403


class NotFound(AppError):
    """No such document, conversation or message for this owner."""

    code = "not_found"
    status = 404


class Conflict(AppError):
    """The thing exists, but its state does not allow this."""

    code = "conflict"
    status = 409


class NotReady(Conflict):
    """A document that can't be asked yet, or whose ingestion failed."""

    code = "not_ready"


class TooLarge(AppError):
    """More than the engine's pages or memory can ever hold."""

    code = "request_too_large"
    status = 413


class TooLargeUpload(TooLarge):
    """An upload over the size limit."""

    code = "upload_too_large"


class UnsupportedUpload(AppError):
    """An upload of a kind that can't be read."""

    code = "unsupported_type"
    status = 415


class NotSearchable(AppError):
    """A file or a text that retrieval can do nothing with."""

    code = "retrieval_error"
    status = 422


class TooManyQuestions(AppError):
    """The queue of questions is full. `retry_s`: seconds until there will be a place, if that can
    be told."""

    code = "too_many_questions"
    status = 429

    def __init__(
        self, message: str, *, code: str | None = None, retry_s: int | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retry_s = retry_s


class EmptyUpload(AppError):
    """An upload of zero bytes."""

    code = "empty_file"
    status = 422


class Unavailable(AppError):
    """Works again without a change to the request."""

    code = "unavailable"
    status = 503


class DatabaseBusy(Unavailable):
    """The database stayed locked or out of reach for longer than the busy timeout."""

    code = "database_busy"


class NoNewWork(Unavailable):
    """The server begins nothing new for now; what runs goes on. The code says why."""


class AlreadyServing(Unavailable):
    """Another `fineprint serve` uses the same data folder."""

    code = "already_serving"


class ModelUnavailable(Unavailable):
    """The model's file is missing or damaged, or could not be fetched."""

    code = "model_unavailable"


class TimedOut(AppError):
    """Nothing was there to show within the time that the request allows."""

    code = "timeout"
    status = 504


class StorageFull(AppError):
    """No space left (or quota used up) where the data folder lies."""

    code = "storage_full"
    status = 507


class Corrupted(AppError):
    """Stored data that does not match its record."""

    code = "corrupted"
