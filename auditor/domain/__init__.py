"""The project's nouns as plain values: standard library only, no I/O. Everything else may import this."""
