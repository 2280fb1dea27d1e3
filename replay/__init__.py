"""Replay: asks stored traffic again in other prompt formats, and compares the answers pairwise."""
