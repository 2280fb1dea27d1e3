"""Limits of client keys, on one host and shared by several."""
