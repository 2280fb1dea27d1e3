"""Prepare the templates that pages are made of: everything is escaped, and an unknown name is an error."""

from dataclasses import dataclass, replace
from typing import Any, Self

from jinja2 import BaseLoader, Environment, StrictUndefined


def environment(loader: BaseLoader) -> Environment:
    """Make the environment for the templates that ``loader`` finds."""
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSection:
    """One section of the page: the template that writes it, and what that is given."""

    name: str
    title: str
    given: dict[str, Any]

    def of(self, rubric: str) -> Self:
        """Name the rubric in the title."""
        return replace(self, title=f"{self.title} ({rubric})")
