"""Turn counts into estimates with intervals, coverage and reasons for absence.

``analysis`` makes ``analysis.json``; its entries come from ``groups``, ``variation``, ``levels``, ``mitigation``,
``tradeoff``, ``rankings`` and ``judges``, and from ``auditor.reviews`` for people's labels. ``snapshots`` and the
modules beside it make the rows that the store keeps. ``auditor.report`` prints both.
"""
