"""The first schema: entries, what follows from them, and triggers against accidents."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "discreet_head",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "discreet_books",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("parent", sa.Text, nullable=True, index=True),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("amounts", sa.Text, nullable=False),
        sa.Column("entries", sa.BigInteger, nullable=False),
    )
    texts = ["at", "who", "book", "kind", "label", "event", "price", "terms"]
    texts += ["epsilon", "delta", "fraction", "proof", "version"]
    op.create_table(
        "discreet_entries",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in texts),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_index("discreet_entries_by_book", "discreet_entries", ["book", "seq"])
    guard()


def guard() -> None:
    """Refuse UPDATE and DELETE on entries."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION discreet_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER discreet_entries_guard BEFORE UPDATE OR DELETE ON discreet_entries "
            "FOR EACH ROW EXECUTE FUNCTION discreet_append_only()"
        )
        return
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER discreet_entries_no_{verb.lower()} BEFORE {verb} ON discreet_entries "
            "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        )
