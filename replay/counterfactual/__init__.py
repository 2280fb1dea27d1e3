"""Rewrite English text about another group: the new text with every edit, or the reason why there is none.

The same texts, swap, lexicon and seed give the same result. ``swap`` has the entry point. ``lexicon`` reads the words,
``text`` splits a text into the words that may change, ``names``, ``terms`` and ``gender`` find what must change, and
``edits`` changes it.
"""

from replay.counterfactual.edits import Edit, EditRule, RefusalReason, RefusedSwap, SwappedTexts
from replay.counterfactual.lexicon import SwapLexicon, read_lexicon
from replay.counterfactual.swap import GroupSwap, read_swap, swap_text, swap_texts

__all__ = [
    "Edit",
    "EditRule",
    "GroupSwap",
    "RefusalReason",
    "RefusedSwap",
    "SwapLexicon",
    "SwappedTexts",
    "read_lexicon",
    "read_swap",
    "swap_text",
    "swap_texts",
]
