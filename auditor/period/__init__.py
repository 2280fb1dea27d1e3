"""The report over a period: its document, what it contains, its comparisons with peers, and making it (again).

``document`` defines ``report.json``. ``report`` reads the store (``auditor.store.period``), ``contents`` and ``peers``
make the parts, ``evidence`` says which requirement each part is evidence for. ``auditor.report.period`` is the page.
"""
