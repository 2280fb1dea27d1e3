"""The instrument: the statements of the pool, the templates that put them, and the designs that combine the two.

``pool`` has the statements, ``templates`` the wordings, ``asking`` puts one with the other, ``designs`` says which
conditions are asked. ``auditor.probes`` turns a design into planned calls and sends them.
"""
