"""Compute statistics with numpy and scipy: from arrays to small records, without terms of the domain.

``auditor.metrics`` defines what is counted; this package computes how precise it is.
"""
