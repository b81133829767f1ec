"""Entries name the rules that priced them; the guards also refuse to empty the table or to replace an entry."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column, which is empty in older entries, and the guards."""
    op.add_column("discreet_entries", sa.Column("rules", sa.Text, nullable=False, server_default=""))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE TRIGGER discreet_entries_guard_all BEFORE TRUNCATE ON discreet_entries "
            "FOR EACH STATEMENT EXECUTE FUNCTION discreet_append_only()"
        )
        return
    op.execute(
        "CREATE TRIGGER discreet_entries_no_replace BEFORE INSERT ON discreet_entries "
        "WHEN EXISTS (SELECT 1 FROM discreet_entries WHERE seq = NEW.seq) "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    )
