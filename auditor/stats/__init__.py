"""Statistics in plain numpy and scipy: arrays in, small records out. No word of the domain is known here.

``auditor.metrics`` says what is counted; this package says how sure one may be of it.
"""
