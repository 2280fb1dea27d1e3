"""Export stored estimates as Prometheus series. Nothing is computed here.

``families`` gives rows their names, labels and budget; ``exposition`` renders each new snapshot once.
"""
