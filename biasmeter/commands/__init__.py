"""The command line: one module for the commands of one noun, and `main`, which joins them.

A module imports heavy libraries only when one of its commands runs.
"""
