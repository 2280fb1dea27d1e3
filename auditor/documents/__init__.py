"""Define, read and write files: JSON documents with their schemas, and JSONL rows."""
