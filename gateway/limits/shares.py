"""Limits per minute over several hosts: each host holds a share of a key's limit, taken ahead from the store.

The shares of all hosts together never exceed the limit: a host takes only what no other holds, and what it gives back
is free for others once its workers know the smaller share and the last minute's use has fallen to it. So no request
waits for the store, and while the store is away each host keeps to its share. Two exceptions are bounded: a host always
has a share of one, and a host that has not renewed its shares for `GONE_AFTER` no longer counts.

The shipper calls this; workers see a share as the limit of the key in their snapshot.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import asyncpg

from auditor.domain.keys import Key
from gateway.limits.ledger import KeyUse, Ledger

#: Seconds after which the shares of a host that does not renew them are free for others.
GONE_AFTER: Final = 300.0
#: While others are in need, a host without need holds this part of its equal share, so its first requests find room.
_IDLE_PART: Final = 4

#: One host takes shares at a time, for some milliseconds. Hosts that were started together ask together, so each waits
#: for its turn; not for long, because the publication of keys follows.
_LOCK = "SET LOCAL lock_timeout = '500ms'; SELECT pg_advisory_xact_lock(hashtext('biasmeter key shares'))"
_OTHERS = """
    SELECT key_id, count(*) AS hosts, sum(requests)::bigint AS requests, sum(tokens)::bigint AS tokens,
           count(*) FILTER (WHERE needs_requests) AS needing_requests,
           count(*) FILTER (WHERE needs_tokens) AS needing_tokens,
           coalesce(sum(requests) FILTER (WHERE NOT needs_requests), 0)::bigint AS idle_requests,
           coalesce(sum(tokens) FILTER (WHERE NOT needs_tokens), 0)::bigint AS idle_tokens
    FROM key_shares WHERE ledger <> $1 AND renewed_at > now() - make_interval(secs => $2) GROUP BY key_id
"""
_OWN = "SELECT key_id, requests, tokens FROM key_shares WHERE ledger = $1"
_WRITE = """
    INSERT INTO key_shares (key_id, ledger, requests, tokens, needs_requests, needs_tokens, renewed_at)
    SELECT told.*, now() FROM unnest($2::text[], array_fill($1::uuid, ARRAY[cardinality($2::text[])]), $3::bigint[],
        $4::bigint[], $5::boolean[], $6::boolean[]) AS told (key_id, ledger, requests, tokens, nr, nt)
    ON CONFLICT (key_id, ledger) DO UPDATE SET requests = excluded.requests, tokens = excluded.tokens,
        needs_requests = excluded.needs_requests, needs_tokens = excluded.needs_tokens, renewed_at = now()
"""
_FORGET = "DELETE FROM key_shares WHERE renewed_at < now() - make_interval(secs => $1)"


class OtherHosts(NamedTuple):
    """What the other hosts hold of one limit."""

    hosts: int = 0
    held: int = 0
    needing: int = 0  #: hosts that have used half of their share
    idle: int = 0  #: held by the others


def needs_more(limit: int, share: int, hosts: int, use: KeyUse, used: int) -> bool:
    """Return whether a host needs more than its share: it is half used, was full lately, or is very small."""
    return use.was_full or 2 * used >= share or share < limit // (_IDLE_PART * hosts)


def next_share(limit: int, *, needs: bool, is_new: bool, others: OtherHosts) -> int:
    """Return the share that a host takes now, at least 1.

    Hosts in need divide equally what the others do not hold. Without need a host has its equal share, and a part of it
    while others are in need. It takes at most what no other holds, and of a new key half of that, because the others
    learn of it within seconds.
    """
    left = limit - others.held
    if needs:
        wanted = (limit - others.idle) // (others.needing + 1)
    else:
        wanted = limit // ((others.hosts + 1) * (_IDLE_PART if others.needing else 1))
    return max(1, min(wanted, left // 2 if is_new else left))


@dataclass(frozen=True, slots=True)
class _Share:
    """A host's share of one limit: what its workers may use now, what it holds in the store, and its need."""

    now: int
    held: int
    needs: bool


class KeyShares:
    """The shares of this host. ``ledger`` tells what its workers have used."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        #: What workers may still be using, by key: requests and tokens.
        self._published: dict[str, tuple[int, int]] | None = None

    async def take(self, connection: asyncpg.Connection, keys: Iterable[Key]) -> tuple[Key, ...]:
        """Renew the shares of all keys with limits per minute, and return the keys with these shares as limits.

        While another host holds the lock, shares stay as they are, and a key without one has a share of one.
        """
        keys = tuple(keys)
        limited = [key for key in keys if not key.revoked and (key.rpm is not None or key.tpm is not None)]
        if not limited:
            return keys
        if self._published is None:  # this process is new: the workers have what the last one took
            rows = await connection.fetch(_OWN, self._ledger.id)
            self._published = {row["key_id"]: (row["requests"], row["tokens"]) for row in rows}
        try:
            async with connection.transaction():
                await connection.execute(_LOCK)
                taken = await self._renew(connection, limited)
        except asyncpg.LockNotAvailableError:
            now = {key.id: self._published.get(key.id, (1, 1)) for key in limited}
        else:
            now = {name: (requests.now, tokens.now) for name, (requests, tokens) in taken.items()}
        return tuple(_with_limits(key, now[key.id]) if key.id in now else key for key in keys)

    async def _renew(self, connection: asyncpg.Connection, keys: Iterable[Key]) -> dict[str, tuple[_Share, _Share]]:
        """Take the shares of these keys, of requests and of tokens; the lock is held."""
        rows = {row["key_id"]: row for row in await connection.fetch(_OTHERS, self._ledger.id, GONE_AFTER)}
        taken = {key.id: self._take(key, rows.get(key.id), alone=not rows) for key in keys}
        shares = list(taken.values())
        await connection.execute(
            _WRITE, self._ledger.id, list(taken), [requests.held for requests, _ in shares],
            [tokens.held for _, tokens in shares], [requests.needs for requests, _ in shares],
            [tokens.needs for _, tokens in shares],
        )  # fmt: skip
        await connection.execute(_FORGET, 2 * GONE_AFTER)
        return taken

    def published(self, keys: Iterable[Key]) -> None:
        """Remember the shares that workers have been told."""
        self._published = {key.id: (key.rpm or 0, key.tpm or 0) for key in keys}

    def _take(self, key: Key, row: asyncpg.Record | None, *, alone: bool) -> tuple[_Share, _Share]:
        assert self._published is not None
        use = self._ledger.use_of(key.id)
        known = self._published.get(key.id, (0, 0) if alone else (None, None))
        requests, tokens = OtherHosts(), OtherHosts()
        if row is not None:
            hosts = row["hosts"]
            requests = OtherHosts(hosts, row["requests"], row["needing_requests"], row["idle_requests"])
            tokens = OtherHosts(hosts, row["tokens"], row["needing_tokens"], row["idle_tokens"])
        return _share(key.rpm, known[0], use, use.requests, requests), _share(
            key.tpm, known[1], use, use.tokens, tokens
        )


def _share(limit: int | None, known: int | None, use: KeyUse, used: int, others: OtherHosts) -> _Share:
    if limit is None:
        return _Share(0, 0, needs=False)
    needs = known is not None and needs_more(limit, known, others.hosts + 1, use, used)
    now = next_share(limit, needs=needs, is_new=known is None, others=others)
    return _Share(now, max(now, min(known or 0, limit), used), needs)


def _with_limits(key: Key, shares: tuple[int, int]) -> Key:
    """Return a key with its shares, at least 1, as its limits."""
    rpm, tpm = (
        None if limit is None else max(share, 1) for limit, share in zip((key.rpm, key.tpm), shares, strict=True)
    )
    return replace(key, rpm=rpm, tpm=tpm)
