"""The Grafana dashboards as code: ``python -m deploy.grafana`` writes the JSON files in ``dashboards``.

``dashboard`` declares the dashboards and their rows. ``fleet``, ``deployment``, ``drift``, ``peers``, ``gateway`` and
``pipeline`` build the panels. ``panels`` has the kinds of panels, ``queries`` the kinds of queries, ``variables`` the
variables at the top, and ``findings`` the annotations that mark findings.
"""
