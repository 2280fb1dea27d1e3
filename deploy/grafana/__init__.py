"""The Grafana dashboards as code: ``python -m deploy.grafana`` writes the JSON files in ``dashboards``.

``dashboard`` says which dashboards there are and which rows each has. ``fleet``, ``deployment``, ``drift``, ``peers``,
``gateway`` and ``pipeline`` hold panels, ``panels`` knows the few kinds of panel there are, ``queries`` the few ways
series are asked for, ``variables`` what can be chosen at the top, ``findings`` the marks of what was found.
"""
