"""Where alembic starts: the connection is handed over by ``discreet.ledger.schema.migrate``."""

from alembic import context

from discreet.ledger.schema import VERSION_TABLE, metadata

if hasattr(context, "config"):  # only while alembic runs this file; a test collector imports it as a module
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
    )
    context.run_migrations()
