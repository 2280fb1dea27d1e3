"""Export stored exchanges to JSONL, and import exchanges from JSONL or from another gateway's logs."""
