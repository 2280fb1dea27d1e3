"""Serve the auditor's HTTP API: stored data as JSON, the console's pages, health and metrics."""
