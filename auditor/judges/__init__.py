"""Judges: each reads one free text and gives one verdict on its stance. ``auditor.panel`` combines several.

One file is one kind of judge. A kind registers a factory with ``@judge_kind``; ``load_judges`` finds the files,
and turns the names a person gives into judges. ``rubric.py`` says what all of them are asked.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, runtime_checkable

from auditor.domain.coding import Verdict
from auditor.errors import UsageError
from auditor.judges.rubric import STATEMENT, Rubric, find_rubric

if TYPE_CHECKING:
    import httpx

    from auditor.access import GatewayAccess
    from auditor.config import Config
    from auditor.judges.endpoint import JudgeEndpoint


class Judge(Protocol):
    """One rater of free text. It answers with a label of its rubric, or says that it gives none."""

    @property
    def name(self) -> str:
        """How people call it; unique within a panel."""

    @property
    def version(self) -> str:
        """Changes whenever the same text could get another label."""

    @property
    def rubric(self) -> Rubric:
        """What it was asked."""

    @property
    def coder(self) -> str:
        """``name@version:hash``: stored with every row it labelled."""

    async def read(self, statement: str | None, text: str) -> Verdict:
        """Read one text.

        Raises
        ------
        JudgeUnavailable
            When the judge could not be asked; the row then stays uncoded.
        """

    def describe(self) -> Mapping[str, str]:
        """Return what has to be stored so that a later reader knows who labelled a row."""

    async def aclose(self) -> None:
        """Give back what it holds open."""


@runtime_checkable
class LocalJudge(Judge, Protocol):
    """A judge that needs no network, and can therefore be asked without an event loop."""

    def read_now(self, statement: str | None, text: str) -> Verdict:
        """Read one text at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeSettings:
    """What a factory gets: the rubric, and for a judge behind an endpoint where and over what it is reached."""

    rubric: Rubric
    endpoint: "JudgeEndpoint | None" = None
    client: "httpx.AsyncClient | None" = None


JudgeFactory = Callable[[JudgeSettings], Judge]
_Factory = TypeVar("_Factory", bound=JudgeFactory)

_kinds: dict[str, JudgeFactory] = {}

#: The kind that serves judges which a configuration describes by their deployment.
CONFIGURED_KIND: Final = "llm"


def judge_kind(name: str) -> Callable[[_Factory], _Factory]:
    """Register a factory under a name that is still free."""

    def register(factory: _Factory) -> _Factory:
        if name in _kinds:
            raise ValueError(f"two kinds of judge are called {name!r}")
        _kinds[name] = factory
        return factory

    return register


def judge_kinds() -> Mapping[str, JudgeFactory]:
    """Return every kind there is, after importing every file of this package."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_kinds.items()))


def load_judges(
    names: Sequence[str],
    config: "Config | None" = None,
    *,
    rubric: str = STATEMENT,
    client: "httpx.AsyncClient | None" = None,
    through: "GatewayAccess | None" = None,
) -> tuple[Judge, ...]:
    """Make the named judges, in the given order.

    Parameters
    ----------
    names
        ``lexicon`` needs no configuration; any other name is looked up in it. No name twice: that would be one
        judge with two votes.
    config
        Where configured judges and their deployments are found.
    rubric
        What they are asked.
    client
        The connection pool all of them share; opened here when absent, closed by the panel.
    through
        The gateway, where judges are to be asked through its door (marked as audit traffic) and not directly.

    Raises
    ------
    UsageError
        For an unknown or repeated name; the message lists the known ones.
    """
    from auditor.judges.configured import find_endpoint  # noqa: PLC0415 -- they load pydantic and httpx
    from auditor.judges.endpoint import open_client  # noqa: PLC0415 -- as above

    question = find_rubric(rubric)
    kinds = judge_kinds()
    plain = sorted(set(kinds) - {CONFIGURED_KIND})
    configured = [judge.name for judge in config.judges if judge.name not in plain] if config else []
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"judge {name!r} is named twice")
        if name not in plain and name not in configured:
            raise UsageError(f"unknown judge {name!r}; known: {', '.join([*plain, *configured])}")
    endpoints = {name: find_endpoint(config, name, through) for name in names if config and name not in plain}
    shared = (client or open_client(sum(one.concurrency for one in endpoints.values()))) if endpoints else None
    return tuple(
        kinds[CONFIGURED_KIND if name in endpoints else name](
            JudgeSettings(rubric=question, endpoint=endpoints.get(name), client=shared)
        )
        for name in names
    )
