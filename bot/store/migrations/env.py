"""Run by Alembic, inside the transaction that `bot.store.schema.migration` opened."""

from alembic import context

from bot.store.schema.migration import VERSION_TABLE
from bot.store.schema.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
