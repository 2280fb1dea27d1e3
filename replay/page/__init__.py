"""Render ``comparison.json`` as a page."""
