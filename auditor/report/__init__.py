"""The report: one self-contained HTML page made from a finished document. Nothing is estimated here.

``places`` reads a document with the place of each value, ``cells`` and ``tables`` print it, a module of ``sections``
chooses what stands in each section, ``figures`` draws, and ``render`` fills the page with them.
"""
