"""The auditor's series: stored estimates as Prometheus scrapes them. It shows rows and computes nothing.

``families`` gives rows their names, labels and budget; ``exposition`` renders a snapshot once, whenever there is a new
one. The numbers' meaning is ``auditor.live``'s.
"""
