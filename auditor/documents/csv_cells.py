"""Keep spreadsheets from executing the text of a cell (https://owasp.org/www-community/attacks/CSV_Injection).

Text that begins as a formula gets an apostrophe in front. One that has apostrophes and then begins so gets another, so
that reading is the inverse of writing. Numbers stay numbers.
"""

import re
from typing import Final

_FORMULA: Final = re.compile(r"'*[=+\-@\t\r]")
_ESCAPED: Final = re.compile(r"'+[=+\-@\t\r]")


def escape_formula(value: object) -> object:
    """Return the value of a cell that is written.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("'-1"), escape_formula("a=b"), escape_formula(-1)
    ("'=1+1", "''-1", 'a=b', -1)
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def unescape_formula(text: str) -> str:
    """Return the text of a cell that is read, without the apostrophe of `escape_formula`.

    Examples
    --------
    >>> unescape_formula("'=1+1"), unescape_formula("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if _ESCAPED.match(text) else text
