"""Say for every table of the store who writes it and how long its rows are kept.

``retention`` removes what is due. A test compares this list with the schema, so a new table needs a line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Lifetime(StrEnum):
    """How long the rows of a table are kept."""

    CONTENT = "content"  #: for ``retention.content`` after the exchange
    FACTS = "facts"  #: for ``retention.facts`` after the exchange, or after the row was made
    PARENT = "parent"  #: as long as the row of another table that it belongs to
    WORK = "work"  #: until the work that it describes is done
    FOREVER = "forever"  #: few rows, without words of clients


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRule:
    """The owner of a table and the lifetime of its rows."""

    owner: str  #: the module that writes it
    lifetime: Lifetime
    content: str | None = None  #: a column that is emptied after ``retention.content`` while its row stays
    parent: str | None = None  #: the table whose rows it follows


_CONTENT: Final = Lifetime.CONTENT
_FACTS: Final = Lifetime.FACTS
_PARENT: Final = Lifetime.PARENT
_WORK: Final = Lifetime.WORK
_FOREVER: Final = Lifetime.FOREVER


def _rule(owner: str, lifetime: Lifetime, content: str | None = None, parent: str | None = None) -> TableRule:
    return TableRule(owner=owner, lifetime=lifetime, content=content, parent=parent)


#: Every table of the store, with those of the job queue.
LIFETIMES: Final[Mapping[str, TableRule]] = {
    "exchanges": _rule("gateway.storing.exchange_store", _FACTS),
    "exchange_content": _rule("gateway.storing.exchange_store", _CONTENT),
    "exchange_counts": _rule("auditor.store.overview", _FACTS),
    "erasures": _rule("auditor.store.erasure", _FOREVER),
    "erased_exchanges": _rule("auditor.store.erasure", _FACTS),
    "chain": _rule("auditor.store.chain", _FACTS),
    "chain_base": _rule("auditor.store.chain", _FOREVER),
    "planned_instances": _rule("gateway.storing.exchange_store", _PARENT, parent="planned_calls"),
    "client_keys": _rule("auditor.store.keys", _FOREVER),
    "key_spending": _rule("gateway.limits.ledger", _PARENT, parent="client_keys"),
    "key_shares": _rule("gateway.limits.shares", _PARENT, parent="client_keys"),
    "console_sessions": _rule("auditor.store.sessions", _PARENT, parent="client_keys"),
    "statements": _rule("auditor.store.plans", _FOREVER),
    "plans": _rule("auditor.store.plans", _FACTS),
    "planned_calls": _rule("auditor.store.plans", _PARENT, parent="plans"),
    "console_runs": _rule("auditor.store.console_runs", _FOREVER),
    "plan_counts": _rule("auditor.store.overview", _PARENT, parent="plans"),
    "plan_usage": _rule("auditor.store.plans", _PARENT, parent="plans"),
    "coders": _rule("auditor.store.codings", _FOREVER),
    "codings": _rule("auditor.store.codings", _FACTS),
    "votes": _rule("auditor.store.codings", _FACTS, content="rationale"),
    "answer_words": _rule("auditor.store.answer_words", _CONTENT),
    "stale_tiles": _rule("auditor.store.codings", _WORK),
    "unsent_codings": _rule("auditor.store.codings", _WORK),
    "coding_marks": _rule("auditor.store.uncoded", _PARENT, parent="coders"),
    "arrivals": _rule("auditor.store.exchanges", _WORK),
    "tallies": _rule("auditor.store.tallies", _FACTS),
    "ballots": _rule("auditor.store.tallies", _FACTS),
    "windows": _rule("auditor.store.tallies", _FACTS),
    "window_tallies": _rule("auditor.store.tallies", _PARENT, parent="windows"),
    "window_ballots": _rule("auditor.store.tallies", _PARENT, parent="windows"),
    "estimates": _rule("auditor.store.estimates", _WORK),
    "reviews": _rule("auditor.store.reviews", _FACTS, content="note"),
    "review_draws": _rule("auditor.store.review_draws", _FACTS),
    "review_draw_items": _rule("auditor.store.review_draws", _PARENT, parent="review_draws"),
    "review_locks": _rule("auditor.store.reviews", _PARENT, parent="review_draws"),
    "anchor_runs": _rule("auditor.store.anchors", _FOREVER),
    "peer_rounds": _rule("auditor.store.peers", _FACTS),
    "peer_questions": _rule("auditor.store.peers", _PARENT, parent="peer_rounds"),
    "peer_calls": _rule("auditor.store.peers", _PARENT, parent="peer_rounds"),
    "peer_passed_over": _rule("auditor.store.mirroring", _FACTS),
    "peer_scorers": _rule("auditor.store.peer_scores", _FOREVER),
    # Only of clients' exchanges and of mirrored ones: a vector says something about its text.
    "peer_vectors": _rule("auditor.store.peer_scores", _FACTS, content="vector"),
    "peer_scores": _rule("auditor.store.peer_scores", _FACTS, content="justification"),
    "peer_comparisons": _rule("auditor.store.comparisons", _WORK),
    "monitor_days": _rule("auditor.store.monitor", _FOREVER),
    "monitor_references": _rule("auditor.store.references", _FOREVER),
    "monitor_watches": _rule("auditor.store.monitor", _PARENT, parent="monitor_references"),
    "findings": _rule("auditor.store.findings", _FOREVER),
    "finding_events": _rule("auditor.store.findings", _PARENT, parent="findings"),
    "route_actions": _rule("auditor.store.actions", _PARENT, parent="findings"),
    "arm_stops": _rule("auditor.store.trials", _FOREVER),
    "webhook_deliveries": _rule("auditor.store.findings", _FACTS),
    "exposures": _rule("auditor.store.exposures", _FACTS),
    "biasmeter_jobs": _rule("auditor.store.queue", _WORK),
    "biasmeter_jobs_log": _rule("auditor.store.queue", _WORK),
    "biasmeter_jobs_statistics": _rule("auditor.store.queue", _WORK),
    "biasmeter_jobs_schedules": _rule("auditor.store.queue", _FOREVER),
    "alembic_version": _rule("auditor.store.schema", _FOREVER),
}
