"""The version of the store's schema that this release reads and writes: the newest Alembic revision."""

SCHEMA_VERSION = "0001"
