"""Probes: planned calls under assigned conditions, sent through the gateway like client requests.

``plan`` makes a plan from a design, ``estimate`` computes its cost and detectable shift in advance, ``run`` sends the
unanswered calls (``session``, ``send``), and ``timed`` runs the repeated plans of the configuration.
"""
