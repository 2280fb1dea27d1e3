"""The audit's work on stored exchanges: find -> code -> count -> estimate, each of which may be done again at any time.

``find``, ``code``, ``count`` and ``estimate`` are one step each; ``worker`` has any number of processes share them over
pgqueuer, ``idle`` does all that there is and returns.
"""
