"""Render pages from finished documents. Nothing is estimated here.

Pages: ``analysis`` (``report.html``), ``period``, ``peers``, ``pool``. Topics, each with its tables and its figure:
``summary``, ``decomposition``, ``prompts``, ``levels``, ``variation``, ``crossed``, ``rankings``, ``mitigation``,
``slices``, ``basis``, ``quotations``, ``judges``, ``reviews``, ``exposures``. They share ``document``
(entries of one rubric, and values that know their JSON pointers), ``tables``, ``wording``, ``templates``, ``drawing``,
``heat_map`` and ``canvas``.
"""
