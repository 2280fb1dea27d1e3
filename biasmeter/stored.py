"""`open`: the store of a configuration as data frames."""

import os
from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import load_without_upstream_keys
from auditor.domain.moments import EXAMPLES, read_moment
from auditor.errors import UsageError
from auditor.export.coded_rows import COLUMNS, OPTIONS, coded_rows
from auditor.postgres.embedded import open_store
from auditor.store.answers import CELLS, CodedSelection
from auditor.store.answers import FILTERS as CODED_FILTERS
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import FILTERS as ESTIMATE_FILTERS
from auditor.store.estimates import EstimateRow, read_estimates
from auditor.store.schema import check_version
from biasmeter.coroutines import run_coroutine
from biasmeter.frames import frame_of

if TYPE_CHECKING:
    import pandas as pd

_T = TypeVar("_T")
_ONLY_WITH_CONTENT = frozenset({"statement", "response", "template_id", *OPTIONS})


class Store:
    """What the product has stored, read as data frames; see `open`. Close it, or use it as a context manager."""

    def __init__(self, config: str | os.PathLike[str]) -> None:
        self._config = load_without_upstream_keys(Path(config), os.environ)
        self._stack = ExitStack()
        self._url = self._stack.enter_context(open_store(self._config.data_dir, self._config.database_url(os.environ)))
        try:
            self._read(check_version)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop using the store; an embedded one stops with its last user."""
        self._stack.close()

    def estimates(self, **filters: str) -> "pd.DataFrame":
        """Return the current estimates, one row each: those of the dashboards and of ``GET /api/estimates``.

        Parameters
        ----------
        filters
            Values of ``deployment, origin, rubric, condition, window, metric, layer, base``.

        Raises
        ------
        UsageError
            A filter is not known.
        StoreUnavailable
            PostgreSQL does not answer.
        """
        _check(filters, ESTIMATE_FILTERS)

        async def read(engine: AsyncEngine) -> list[EstimateRow]:
            async with transaction(engine) as connection:
                return await read_estimates(connection, **filters)

        rows = [asdict(row) for row in self._read(read)]
        return frame_of(rows, list(EstimateRow.__dataclass_fields__))

    def answers(
        self, *, since: str | datetime | None = None, until: str | datetime | None = None, **filters: str
    ) -> "pd.DataFrame":
        """Return the coded exchanges with statement and response, the oldest first.

        Parameters
        ----------
        since, until
            Begin of the first and of the first excluded exchange, such as ``2026-03-01`` or ``7d`` (ago).
        filters
            Values of ``deployment, origin, rubric, audit, claim, task, perspective, role, sentiment, category,
            statement_id, sel, elab``; ``cell`` (``n11, n10, n01, n00, sel_E, elab_E, union``, several separated by
            commas: what the numerators of the measures count).

        Returns
        -------
        pandas.DataFrame
            The columns of ``biasmeter export-coded``. ``response`` is missing where the content is not kept.

        Raises
        ------
        UsageError, StoreUnavailable
            `estimates` would fail with the same error.
        """
        return self._coded(since, until, filters, content=True)

    def coded(
        self, *, since: str | datetime | None = None, until: str | datetime | None = None, **filters: str
    ) -> "pd.DataFrame":
        """Return the labels of the coded exchanges, without statement and response; otherwise as `answers`.

        `biasmeter.analyze` of the frame gives the estimates of the same selection.
        """
        return self._coded(since, until, filters, content=False)

    def _coded(
        self, since: str | datetime | None, until: str | datetime | None, filters: dict[str, str], *, content: bool
    ) -> "pd.DataFrame":
        cells = tuple(cell for cell in filters.pop("cell", "").split(",") if cell)
        _check(filters, CODED_FILTERS)
        _check(cells, CELLS)
        selection = CodedSelection(
            equal=filters, cells=cells, since=_moment("since", since), until=_moment("until", until)
        )

        async def read(engine: AsyncEngine) -> list[dict[str, Any]]:
            return [
                row async for row in coded_rows(engine, self._config, selection, content=content, templates=content)
            ]

        return frame_of(self._read(read), [name for name in COLUMNS if content or name not in _ONLY_WITH_CONTENT])

    def _read(self, work: Callable[[AsyncEngine], Awaitable[_T]]) -> _T:
        async def run() -> _T:
            engine = make_engine(self._url)
            try:
                return await work(engine)
            finally:
                await engine.dispose()

        return run_coroutine(run())


def open(config: str | os.PathLike[str] = "biasmeter.yaml") -> Store:  # noqa: A001 -- biasmeter.open(config)
    """Open the store of a configuration. An embedded store is started, or shared with the product that runs.

    Raises
    ------
    UsageError, InputError
        The configuration cannot be read.
    StoreUnavailable, SchemaMismatch
        PostgreSQL does not answer, or the store is of another version.

    Examples
    --------
    >>> with biasmeter.open("biasmeter.yaml") as store:  # doctest: +SKIP
    ...     frame = store.estimates(window="7d", metric="ber")
    """
    return Store(config)


def _check(filters: Collection[str], known: Collection[str]) -> None:
    for name in filters:
        if name not in known:
            raise UsageError(f"there is no filter {name!r}; known: {', '.join(known)}")


def _moment(name: str, value: str | datetime | None) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    try:
        return read_moment(value, datetime.now(UTC))
    except ValueError:
        raise UsageError(f"{name} {value!r} is not a date or time such as {EXAMPLES}") from None
