"""The audit store: PostgreSQL, one topic a module. Only composition roots open it."""
