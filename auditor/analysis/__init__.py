"""Offline estimates: coded rows in, one deterministic document out.

``rows`` reads a line, ``tallies`` counts lines, ``groups`` and ``across`` estimate, ``document`` writes the JSON words
of ``analysis.json``, a module each makes its further entries, ``run`` joins them. ``auditor.report`` renders it; the
command is ``auditor.cli.analyze``.
"""
