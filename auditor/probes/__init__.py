"""Probes: planned calls under assigned conditions, sent through the gateway's door like anybody's requests.

``plan`` makes a plan out of a design, ``estimate`` says beforehand what it costs and what it can show, ``run`` sends
what has no answer yet (``drain``, ``send``), ``timed`` does so for the plans that the configuration repeats.
"""
