"""Compare arms: the answers to the same parents in several formats. No I/O.

``arms`` holds the answers, ``scores`` sums a metric by arm, ``exposure`` estimates the range of its scores, ``pairs``
compares two arms, ``effects`` computes the share of each factor and the effects of roles and tasks, ``findings`` makes
the entries of ``comparison.json``.
"""
