"""Define the instrument: the statements of the pool, the templates that ask about them, and the designs for both.

``pool`` reads statements, ``templates`` holds the wordings, ``asking`` combines them, ``designs`` chooses the
conditions. ``auditor.probes`` turns a design into planned calls and sends them.
"""
