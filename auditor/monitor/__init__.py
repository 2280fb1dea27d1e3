"""Watching: passes against a reference, detectors with a promised false-alarm rate, and what is made of them.

Pure: passes of counts in, states and decisions out. ``auditor.jobs`` feeds it from the store.
"""
