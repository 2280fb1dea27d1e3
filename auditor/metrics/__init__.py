"""Compute the papers' bias measures from the joint Selection x Elaboration table, without I/O.

``rates`` defines the measures and ``estimate`` their intervals; ``divergence`` gives verdicts on IR and DNI;
``corrected`` corrects a rate by people's labels; ``bounds`` computes coverage and the effect of failures; ``shares``
splits variance by factor; ``means`` averages over deployments; ``ranks`` compares rankings over conditions, without a
vendor, and with the label QE folded; ``standardised`` compares windows; ``tradeoff`` compares rates with tokens;
``mitigation`` tests what a prompt does to both layers; ``items`` analyses statements.
"""
