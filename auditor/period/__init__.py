"""The report over a period: its document, its comparisons with peers, its quotations, and making it (again)."""
