"""The gateway forwards requests of applications to model deployments unchanged, and keeps copies for the audit."""
