"""The jobs of the audit on stored exchanges: find, code, count, estimate. Each step may be repeated at any time.

``queue_worker`` lets any number of processes share the steps over pgqueuer; ``run_once`` runs all open work and
returns. ``auditor.work`` is what all steps share. Jobs of one subject alone are in its package: ``auditor.trials``,
``auditor.export``.
"""
