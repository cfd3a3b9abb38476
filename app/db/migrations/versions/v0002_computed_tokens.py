"""How many tokens of a document's reading went through the model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("computed_tokens", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("documents", "computed_tokens")
