"""Run a test for each of many items as subtests of one test: thousands of parametrised tests cost more than they do."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

Item = TypeVar("Item")


def for_each(
    items: Sequence[Item], key: Callable[[Item], str]
) -> Callable[[Callable[[Item], None]], Callable[[pytest.Subtests], None]]:
    """Return a decorator that makes one test of a function of an item. A failure names the item by its key."""

    def decorate(test: Callable[[Item], None]) -> Callable[[pytest.Subtests], None]:
        def run(subtests: pytest.Subtests) -> None:
            for item in items:
                with subtests.test(key(item)):
                    test(item)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        return run

    return decorate
