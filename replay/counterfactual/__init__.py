"""Rewrite English text about another group: the new text with every edit, or the reason why there is none.

The same texts, swap, lexicon and seed give the same result. ``swap`` has the entry point. ``lexicon`` reads the words,
``text`` splits a text into the words that may change, ``names``, ``terms`` and ``gender`` find what must change, and
``edits`` changes it.
"""
