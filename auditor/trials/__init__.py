"""Trials of a route: instructions that a share of its users or conversations gets, beside a control.

``assignment`` says which arm a unit is in; the gateway needs nothing else of it. ``comparison`` compares the arms in
the form of ``document``. ``harm`` tests an arm while the trial runs, and ``stopping`` stops those that do harm.
``auditor.store.trials`` keeps the counts and the stops.
"""
