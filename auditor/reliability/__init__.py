"""Measure the reliability of judges: their agreement, the choice of a panel, and the effect of each judge.

``sample`` draws the texts, ``rating`` has all candidates label them, ``kappas`` compares the labels, ``choice`` chooses
a panel, ``document`` makes ``judges.json`` and ``reliability.json``.
"""
