"""Print results as lines or JSON; lay out rows as a plain text table: aligned columns, never wrapped."""

import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: Wider than any row: rich wraps or cuts what does not fit.
_WIDTH: Final = 1 << 20


def print_result(document: dict[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print the lines, or the document for machines."""
    for line in [json.dumps(document)] if as_json else lines:
        typer.echo(line)


def table_lines(rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> Iterator[str]:
    """Yield the rows as lines with aligned columns, two spaces apart; align the columns ``right`` to the right.

    >>> list(table_lines([("name", "n"), ("a", "10"), ("b", "2")], right=[1]))
    ['name   n', 'a     10', 'b      2']
    """
    listed = list(rows)
    if not listed:
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    aligned = set(right)
    for column in range(len(listed[0])):
        table.add_column(justify="right" if column in aligned else "left", no_wrap=True)
    for row in listed:
        table.add_row(*map(Text, row))  # as Text, so that brackets are not markup
    console = Console(file=StringIO(), width=_WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        yield line.rstrip()
