"""The demonstration: the whole product on one machine, against simulated deployments of declared truth.

It runs the commands that a user would run, as processes of their own, and reads what they publish; nothing of it is
built in for the occasion. ``stages`` is the order of things, ``installation`` the folder and the processes, ``outcome``
what was found beside what is true.
"""
