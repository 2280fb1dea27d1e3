"""The tables that commands print."""

import doctest

from biasmeter.terminal import tables
from biasmeter.terminal.tables import table_lines


def test_columns_are_aligned_and_lines_end_without_spaces():
    assert list(table_lines([("a", "bb", "c"), ("aaa", "b", ""), ("", "", "ccc")])) == [
        "a    bb  c",
        "aaa  b",
        "         ccc",
    ]


def test_a_long_cell_is_neither_wrapped_nor_cut():
    (line,) = table_lines([("x" * 5_000, "y")])
    assert line == "x" * 5_000 + "  y"


def test_brackets_are_not_markup():
    assert list(table_lines([("BER [95 %]", "[red]x[/red]"), ("1", ":smile:")])) == [
        "BER [95 %]  [red]x[/red]",
        "1           :smile:",
    ]


def test_letters_that_take_two_columns_are_counted_as_two():
    assert list(table_lines([("模型", "a"), ("m", "b")])) == ["模型  a", "m     b"]


def test_no_rows():
    assert list(table_lines([])) == []


def test_the_example():
    assert doctest.testmod(tables).failed == 0
