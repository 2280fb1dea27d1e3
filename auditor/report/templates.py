"""Prepare the templates that pages are made of: everything is escaped, and an unknown name is an error."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, Final, Self

from jinja2 import BaseLoader, BytecodeCache, Environment, StrictUndefined
from jinja2.bccache import Bucket
from typing_extensions import override


class _Compiled(BytecodeCache):
    """What templates were compiled to: once in a process, though every page has an environment of its own."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType] = {}

    @override
    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    @override
    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None  # it has just been compiled
        self._codes[bucket.key, bucket.checksum] = bucket.code


_COMPILED: Final = _Compiled()


def no_answers(_: str) -> str:
    """Return no address: the page does not know a console."""
    return ""


def environment(loader: BaseLoader, answers_of: Callable[[str], str] = no_answers) -> Environment:
    """Make the environment for the templates that ``loader`` finds.

    Parameters
    ----------
    loader
        Loader that finds the templates.
    answers_of
        Function that takes the JSON pointers of a printed value and returns the console's address of the answers
        behind it, or nothing.
    """
    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        bytecode_cache=_COMPILED,
    )  # fmt: skip
    made.globals["answers_of"] = answers_of
    return made


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSection:
    """One section of the page: the template that writes it, and the values that it prints."""

    name: str
    title: str
    values: dict[str, Any]

    def of(self, rubric: str) -> Self:
        """Name the rubric in the title."""
        return replace(self, title=f"{self.title} ({rubric})")
