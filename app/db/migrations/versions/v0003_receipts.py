"""What reading a document's file gave, page by page."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("versions", sa.Column("receipt", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("versions", "receipt")
