"""Turn counts into estimates with intervals, coverage and reasons for absence.

``analysis`` makes ``analysis.json``; its entries come from ``groups``, ``variation``, ``levels``, ``mitigation``,
``tradeoff``, ``rankings``, ``judges``, ``statements`` and ``reviews``. ``snapshots`` and the modules beside it make the
rows that the store keeps. ``auditor.report`` prints both.
"""
