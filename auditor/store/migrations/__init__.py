"""Alembic's folder: the store's schema, one revision a change. Run by ``tiltmeter migrate`` and by nothing else."""
