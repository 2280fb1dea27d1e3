"""The report: one self-contained HTML page made from a finished document. Nothing is estimated here.

``figures`` draws with ``svg``; ``words`` turns values into text; ``render`` fills the page.
"""
