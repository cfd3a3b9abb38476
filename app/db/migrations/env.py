"""Runs the migrations on the connection that `app.db.schema` opened. Does not know settings."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text

from app.db.models import Base

LOCK = 4_625_781_003
"""PostgreSQL advisory lock: two processes starting at once migrate one after the other."""


def run() -> None:
    """Apply the steps inside the caller's transaction."""
    connection: Connection = context.config.attributes["connection"]
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
    )
    context.run_migrations()


run()
