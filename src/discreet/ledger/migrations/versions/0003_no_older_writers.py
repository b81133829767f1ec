"""A process of an older version that is still running may not write: its entries, without rules, break the chain."""

from alembic import op

revision = "0003"
down_revision = "0002"

_REFUSAL = "a newer version of discreet has changed this ledger: upgrade, and start again"


def upgrade() -> None:
    """Refuse new entries without rules; from here on, every version also looks at the schema's before it writes."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION discreet_refuse_older() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER discreet_entries_guard_older BEFORE INSERT ON discreet_entries "
            "FOR EACH ROW WHEN (NEW.rules = '') EXECUTE FUNCTION discreet_refuse_older()"
        )
        return
    op.execute(
        "CREATE TRIGGER discreet_entries_no_older BEFORE INSERT ON discreet_entries WHEN NEW.rules = '' "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    )
