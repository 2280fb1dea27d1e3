"""The Grafana dashboard as code: ``python -m deploy.grafana`` writes ``dashboards/tiltmeter.json``.

``dashboard`` puts rows and variables together, ``fleet``, ``traffic`` and ``deployment`` hold the panels of one row
each, ``panels`` knows the few kinds of panel there are, ``queries`` the few ways series are asked for.
"""
