"""A document that is read with the place of each value, so that a page can say where each of its numbers stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import quote

NOT_THERE: Final = "this document does not say"


@dataclass(frozen=True, slots=True)
class Place:
    """A value of a document, and its JSON pointer as in a URI (RFC 6901, section 6): there is no space in it."""

    value: Any
    path: str = ""

    def at(self, *keys: str | int) -> Self:
        """Go down to a value; where it is not there, to why it is not.

        Examples
        --------
        >>> document = Place({"rates": [{"missing": "12 statements"}, {"value": 0.25}]})
        >>> document.at("rates", 1, "value")
        Place(value=0.25, path='/rates/1/value')
        >>> document.at("rates", 0, "value").reason
        '12 statements'
        """
        found = self
        for key in keys:
            found = found._step(key)
        return found

    def _step(self, key: str | int) -> Self:
        there = key in self.value if isinstance(self.value, Mapping) else self._is_list() and key in range(len(self))
        if not there:
            return type(self)({"missing": self.reason or NOT_THERE})
        return type(self)(self.value[key], f"{self.path}/{_token(key)}")

    @property
    def reason(self) -> str:
        """Why there is no value; empty where there is one."""
        if self.value is None:
            return NOT_THERE
        return self.value["missing"] if self._says_why() else ""

    def _says_why(self) -> bool:
        """Whether it is a reason in place of a value: the key's value is text, and no entry of that name."""
        return isinstance(self.value, Mapping) and isinstance(self.value.get("missing"), str)

    def _is_list(self) -> bool:
        return isinstance(self.value, Sequence) and not isinstance(self.value, str)

    def __len__(self) -> int:
        return len(self.value) if self._is_list() else 0

    def __iter__(self) -> Iterator[Self]:
        """Go through a list's places; a value of another kind has none."""
        return (self.at(index) for index in range(len(self)))

    def names(self) -> list[str]:
        """List an object's keys, without that of a reason."""
        if not isinstance(self.value, Mapping):
            return []
        return [key for key in self.value if key != "missing" or not self._says_why()]


def _token(key: str | int) -> str:
    return quote(str(key).replace("~", "~0").replace("/", "~1"), safe="~")
