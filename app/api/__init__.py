"""The REST door: FastAPI routes over the use cases. Knows HTTP, not models or SQL."""

from app.api.application import create_app

__all__ = ["create_app"]
