"""Alembic's folder: the store's schema, one revision a change. Run by ``biasmeter migrate`` and by nothing else."""
