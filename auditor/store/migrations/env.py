"""Run by Alembic: migrates over the connection that `auditor.store.schema` hands it."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
