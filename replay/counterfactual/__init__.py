"""Counterfactuals: the same English text about another group, with every edit recorded, or the reason why not.

Pure: the same texts, swap, lexicon and seed give the same result. ``swap`` has the entry; ``lexicon`` reads the words,
``text`` what may be touched at all, ``names``, ``terms``, ``ages`` and ``pronouns`` find what is to change, ``edits``
makes it so.
"""

from replay.counterfactual.edits import Edit, Reason, Refused, Rule, Swapped
from replay.counterfactual.lexicon import Lexicon, read_lexicon
from replay.counterfactual.swap import Swap, read_swap, swap_text, swap_texts

__all__ = [
    "Edit",
    "Lexicon",
    "Reason",
    "Refused",
    "Rule",
    "Swap",
    "Swapped",
    "read_lexicon",
    "read_swap",
    "swap_text",
    "swap_texts",
]
