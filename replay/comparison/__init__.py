"""What changes with the way of asking. Pure: coded answers go in, numbers and ``comparison.json`` come out.

``sides`` has the answers by way of asking, ``scores`` what is counted of them, ``exposure`` the range, ``compare`` two
sides against each other, ``effects`` shares by factor and verdicts, ``document`` the words.
"""
