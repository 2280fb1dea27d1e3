"""Run the demonstration: the whole product on one machine, against simulated deployments of declared truth.

It runs the commands that a user would run, as processes of their own, and reads what they store and print. ``stages``
runs the stages in order, ``installation`` manages the folder and the processes, ``outcome`` compares the result with
the truth.
"""
