"""The bias measures of the papers, as functions of the joint Selection x Elaboration table. No I/O.

``joint`` holds the table, ``rates`` the measures, ``estimate`` their intervals and floors, ``divergence`` the verdicts
on (IR, DNI), ``bounds`` coverage and what failures could hide, ``shares`` and ``horizontal`` the across-prompt axis,
``condition_ranks`` the same for ranks. ``means`` and ``vendors`` go over deployments, ``fold`` over the label QE,
``standardised`` compares windows, ``tradeoff`` weighs a rate against its tokens; ``mitigation`` holds the verdicts on
what a prompt does to both layers, ``mitigation_effects`` finds the intervals they go by.
"""
