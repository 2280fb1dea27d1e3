"""Libraries that take long to import, for modules of tests that every run collects and few use."""

from importlib import import_module
from typing import Any


class ImportedLater:
    """A module that is imported when something of it is first used, not when the tests are collected."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for these when it collects
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
