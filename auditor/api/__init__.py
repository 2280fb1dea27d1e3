"""The auditor's HTTP application: the read API of the store, health and metrics."""
