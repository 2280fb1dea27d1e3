"""Stored exchanges as the instrument reads them, and tallies as it estimates from them. No I/O of its own.

``answers`` finds the text in the stored bytes, ``profiles`` reads clients' traffic by an audit profile, ``coders`` says
who reads what, ``readings`` joins the three; ``tallies`` and ``estimates`` turn counts into the rows that are stored.
``auditor.jobs`` runs it.
"""
