"""Logging to stderr, as text or as one JSON object a line, each line with its request's id."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from app.request_id import current_request_id
from app.settings import Settings

_TEXT = "%(asctime)s %(levelname)s %(name)s%(request)s: %(message)s"


def configure_logging(settings: Settings) -> None:
    """Replaces the handlers of the root logger."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_add_request)
    handler.setFormatter(JsonFormatter() if settings.log_json else logging.Formatter(_TEXT))
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    if settings.log_level != "DEBUG":
        # They tell of every migration and every request to ourselves.
        for name in ("alembic", "httpx", "httpx2", "httpcore", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request_id, trace."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = current_request_id()
        if request_id:
            line["request_id"] = request_id
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _add_request(record: logging.LogRecord) -> bool:
    request_id = current_request_id()
    record.request = f" [{request_id}]" if request_id else ""
    return True
