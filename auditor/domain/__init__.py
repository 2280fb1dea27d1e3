"""The project's terms as plain values: standard library only, no I/O. Everything else may import this."""
