"""The gateway: forwards applications' traffic to model deployments, unchanged, and keeps a copy for the audit."""
