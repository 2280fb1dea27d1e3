"""Selectors of exchanges that are to be erased: one exchange, or all of a key, a tag or an end user."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b, sha256
from typing import Final
from uuid import UUID

from auditor.domain.exchange import Exchange

#: The tag under which imported exchanges hold a digest of their end user.
END_USER_TAG: Final = "end_user"
#: The members of a request that name its end user. Found by their text, because a stored copy may be cut.
_USER: Final = re.compile(rb'"(?:user|safety_identifier)"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)


class SelectorKind(StrEnum):
    """What exchanges are selected by."""

    EXCHANGE = "exchange"
    KEY = "key"
    TAG = "tag"
    USER = "user"


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasureSelector:
    """Selects exchanges; ``tag`` is the name of the tag whose value is ``value``."""

    kind: SelectorKind
    value: str
    tag: str = ""

    def matches(self, exchange: Exchange) -> bool:
        """Return whether an exchange is selected.

        Examples
        --------
        >>> ErasureSelector(kind=SelectorKind.USER, value="u-7").names_user(b'{"model": "m", "user": "u-7", "mess')
        True
        """
        match self.kind:
            case SelectorKind.EXCHANGE:
                return exchange.id == UUID(self.value)
            case SelectorKind.KEY:
                return exchange.key_id == self.value
            case SelectorKind.TAG:
                return exchange.tags.get(self.tag) == self.value
            case SelectorKind.USER:
                by_tag = exchange.tags.get(END_USER_TAG) == self.user_digest
                return by_tag or (exchange.request is not None and self.names_user(exchange.request))

    def names_user(self, request: bytes) -> bool:
        """Return whether a request, which may be cut, names the end user in ``user`` or ``safety_identifier``."""
        return any(_text(user) == self.value for user in _USER.findall(request))

    @property
    def user_digest(self) -> str:
        """The digest of the value that clusters and imported tags hold."""
        return blake2b(self.value.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def digest(self, salt: str) -> str:
        """Return a digest that shows to those who know the value that it was erased, and the value to nobody else."""
        return sha256(f"{salt}\0{self.kind}\0{self.tag}\0{self.value}".encode("utf-8", "replace")).hexdigest()


def _text(literal: bytes) -> str | None:
    try:
        return str(json.loads(literal))
    except ValueError:
        return None
