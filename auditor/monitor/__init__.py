"""Monitor drift: compare passes with a reference, with a bounded false-alarm rate.

``passes`` counts, ``references`` fits, ``detectors`` collects evidence, ``drift`` joins them in one state, ``decision``
sets the level of a finding. No I/O: ``auditor.jobs`` reads from the store and writes to it.
"""
