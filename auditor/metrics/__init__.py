"""Compute the papers' bias measures from the joint Selection x Elaboration table, without I/O.

``rates`` defines the measures and ``estimate`` their intervals; ``divergence`` gives verdicts on IR and DNI;
``bounds`` computes coverage and the effect of failures; ``shares``, ``horizontal`` and ``condition_ranks`` compare
conditions; ``means`` and ``vendors`` average over deployments; ``fold`` tests the label QE; ``standardised`` compares
windows; ``tradeoff`` compares rates with tokens; ``mitigation`` and ``mitigation_effects`` test what a prompt does to
both layers.
"""
