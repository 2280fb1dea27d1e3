"""Read the discrete answer of a response with rules only. All task formats share these rules; no I/O and no judge.

The steps: ``view`` (which part of the text is the answer) -> finders (``agreement``, ``yesno``, ``options``,
``completion``, ``ratings`` find every ``Mark``; ``refusal``) -> ``reading`` (which marks win, and which text is left
for the judges). The formats choose the finders; ``tokens`` is for answers that none of them finds.
"""

from typing import Final

#: Changes whenever the same response could be read differently. Stored with every coded row.
SELECTION_VERSION: Final = "selection/4"
