"""Stored exchanges in files: out of the store as JSONL, and into it from that or from another gateway's logs."""
