"""Serve the auditor's HTTP API: stored data as JSON, the status page, health and metrics."""
