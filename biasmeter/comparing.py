"""`compare` and `replay_plan`: stored exchanges in pairs, and what it would cost to ask them again."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import load_without_upstream_keys
from auditor.documents.codec import canonical_bytes
from auditor.documents.comparison import ComparisonDocument
from auditor.work import open_work, utc_now
from biasmeter.frames import frame_of
from biasmeter.results import Comparison
from biasmeter.store_work import in_store
from biasmeter.terminal.comparison_output import print_systems
from replay.pairing import PairingSpec, compare_stored
from replay.plan import prepare, read_spec
from replay.selection import client_selection
from replay.sending import cost_json, forecast_cost
from replay.traffic import read_grouping

if TYPE_CHECKING:
    import pandas as pd


def compare(
    config: str | os.PathLike[str] = "biasmeter.yaml", *, select: str = "all", by: str, yes: bool = False
) -> Comparison:
    """Compare stored client traffic in pairs. As the command ``biasmeter compare``; nothing is sent to deployments.

    Parameters
    ----------
    select
        Selection of the traffic, such as ``route=desk,last=30d``; or ``all``.
    by
        Field whose values are compared: ``tag.NAME``, ``route``, ``model`` or ``system``.
    yes
        Whether judges may be asked about answers that have not been read yet.

    Raises
    ------
    UsageError, InputError, StoreUnavailable
        The command would fail with the same error.

    Examples
    --------
    >>> found = biasmeter.compare("biasmeter.yaml", select="route=desk", by="tag.prompt")  # doctest: +SKIP
    """
    pairing = PairingSpec(selection=client_selection(select), by=read_grouping(by))
    loaded = load_without_upstream_keys(Path(config), os.environ)
    document = in_store(
        loaded, lambda engine: compare_stored(engine, loaded, pairing, print_systems, lambda *_: None, yes=yes)
    )
    return Comparison(canonical_bytes(document), ComparisonDocument, "comparison.json")


class ReplayPlan:
    """What a replay would ask, and what it would cost; see `replay_plan`.

    Attributes
    ----------
    document
        The cost as ``biasmeter replay --json`` prints it before it asks for leave to send.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each deployment that would be asked or judges: calls, tokens and USD."""
        rows = [
            {"for": what, **cost}
            for what, name in (("answers", "to_send"), ("judging", "to_judge"))
            for cost in self.document[name]
        ]
        return frame_of(rows, ["for", "deployment", "calls", "prompt_tokens", "completion_tokens", "usd"])

    def _repr_html_(self) -> str:
        html: str = self.to_pandas()._repr_html_()
        return html


def replay_plan(
    config: str | os.PathLike[str] = "biasmeter.yaml",
    *,
    select: str = "all",
    formats: Sequence[str] | None = None,
    swap: Sequence[str] = (),
    to: str | None = None,
    name: str = "",
) -> ReplayPlan:
    """Plan to ask stored exchanges again, as ``biasmeter replay`` does before it sends. Nothing is sent or stored.

    Parameters
    ----------
    select
        Selection of the exchanges, such as ``origin=probe,task=BJ``; or ``all``.
    formats
        Formats to ask in, such as ``["CTO", "again"]``. Default: CTO and SC; with ``swap`` none.
    swap
        Other groups to ask about, such as ``["gender:male<>female"]``.
    to
        The deployment to ask. Default: the one that gave the stored answer.
    name
        Name that distinguishes another replay of the same selection.

    Raises
    ------
    UsageError, InputError, StoreUnavailable
        The command would fail with the same error.

    Examples
    --------
    >>> biasmeter.replay_plan(select="origin=probe,task=BJ", formats=["CTO"]).to_pandas()  # doctest: +SKIP
    """
    spec = read_spec(select, None if formats is None else ",".join(formats), swap, None, to, name)
    loaded = load_without_upstream_keys(Path(config), os.environ)

    async def run(engine: AsyncEngine) -> dict[str, Any]:
        async with open_work(engine, loaded, utc_now) as work:
            prepared = await prepare(work, spec, lambda *_: None)
            return cost_json(prepared, await forecast_cost(work, prepared))

    return ReplayPlan(in_store(loaded, run))
