"""Charges say whether their release is made with a seed. No table changes; but an older version cannot read such an
entry, and would take it for tampering: it is told to upgrade instead.
"""

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Nothing but the number."""
