"""The auditor: codes stored responses, keeps the estimates, and shows them. Its domain and configuration serve all."""
