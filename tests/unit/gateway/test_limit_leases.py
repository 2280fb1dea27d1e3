"""Leases of limits: several workers against a log of all that happened, kill -9, and how often the lock is taken."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.domain.keys import Key, hash_secret
from gateway.errors import Limited
from gateway.limits.key_limits import MOST_LEASED, Grant, KeyLimits, TokenCount
from gateway.limits.minute_window import SPAN

SECOND = 1_000_000_000
PLAIN = Key(id="key_1", name="app", hash=hash_secret("sk-1"))

#: What a worker does: how many requests of how many tokens, and the tokens that one of them then used, if it ends.
ASKS = st.tuples(st.integers(1, 40), st.integers(0, 60), st.none() | st.integers(0, 90))
STEPS = st.lists(
    st.tuples(st.integers(0, 2), ASKS | st.sampled_from(["return", "die", "wait", "wait long"])),
    min_size=1,
    max_size=40,
)
LIMITS = st.none() | st.integers(1, 900)


class Workers:
    """Three workers of one host, and a log of the requests that they admitted."""

    def __init__(self, path: Path, key: Key) -> None:
        self.path, self.key = path, key
        self.now = 5000 * SECOND
        self.workers = [self._start() for _ in range(3)]
        self.requests: list[int] = []
        self.tokens: list[tuple[int, int]] = []
        self.open: list[tuple[Grant, int, int]] = []
        self.lost = False

    def _start(self) -> KeyLimits:
        return KeyLimits(self.path, 3, lambda: self.now)

    def used(self) -> tuple[int, int]:
        since = self.now // SECOND - SPAN
        return sum(second > since for second in self.requests), sum(n for second, n in self.tokens if second > since)

    def has_room(self) -> bool:
        requests, tokens = self.used()
        rpm, tpm = self.key.rpm, self.key.tpm
        return (rpm is None or requests < rpm) and (tpm is None or tokens < tpm)

    def ask(self, number: int, tokens: int) -> bool:
        """Ask one worker; it may refuse early, but never admit what the log refuses."""
        had_room = self.has_room()
        try:
            grant = self.workers[number].admit(self.key, 0, TokenCount(tokens, 0))
        except Limited:
            return False
        assert had_room
        if grant is not None:
            second = self.now // SECOND
            self.requests.append(second)
            self.tokens.append((second, tokens))
            self.open.append((grant, second, tokens))
        return True

    def settle(self, used: int) -> None:
        if self.open:
            grant, began, reserved = self.open.pop(0)
            grant.settle(used, 0, None, failed=False)
            self.tokens.append((self.now // SECOND if used > reserved else began, used - reserved))

    def do(self, number: int, step: object) -> None:
        if step == "return":
            self.workers[number].return_past_leases()
        elif step == "die":  # without a word: what it had leased stays counted
            self.workers[number] = self._start()
            self.lost = True
        elif step == "wait":
            self.now += SECOND // 3
        elif step == "wait long":
            self.now += 17 * SECOND
        else:
            assert isinstance(step, tuple)
            times, tokens, used = step
            for _ in range(times):
                self.ask(number, tokens)
                if used is not None:
                    self.settle(used)


@settings(max_examples=150, deadline=None)
@given(rpm=LIMITS, tpm=LIMITS, steps=STEPS)
def test_several_workers_never_exceed_a_limit_and_admit_all_of_it(
    rpm: int | None, tpm: int | None, steps: list[tuple[int, object]]
) -> None:
    with TemporaryDirectory() as folder:
        workers = Workers(Path(folder) / "limits.table", replace(PLAIN, rpm=rpm, tpm=tpm))
        for number, step in steps:
            workers.do(number, step)
        if not workers.lost:
            # Once the leases are back, a request is refused exactly if the log refuses it.
            for one in workers.workers:
                one.return_leases()
            had_room = workers.has_room()
            assert workers.ask(0, 1) == had_room
        workers.now += SPAN * SECOND  # also what died workers had leased is free again
        assert workers.has_room() == workers.ask(1, 1)


@pytest.mark.parametrize("tpm", [None, 2**31 - 1])
def test_a_key_in_frequent_use_rarely_takes_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tpm: int | None
) -> None:
    assert locks_of(10_000, 5_000, tpm, tmp_path, monkeypatch) < 10_000 / MOST_LEASED * 1.5 + 50


@pytest.mark.parametrize("seconds", [2, 30])
@pytest.mark.parametrize("tpm", [None, 2**31 - 1])
def test_a_key_in_steady_use_takes_the_lock_once_or_twice_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tpm: int | None, seconds: int
) -> None:
    assert locks_of(10 * seconds, 10, tpm, tmp_path, monkeypatch) <= 2 * seconds + 3


def locks_of(requests: int, a_second: int, tpm: int | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often the lock was taken, with requests at a steady rate and past leases returned as a worker does."""
    now = 5000 * SECOND
    key = replace(PLAIN, rpm=2**31 - 1, tpm=tpm)
    locks = 0
    with closing(KeyLimits(folder / "limits.table", 4, lambda: now)) as limits:
        locked = limits._table.locked

        def counted(name: str) -> object:
            nonlocal locks
            locks += 1
            return locked(name)

        monkeypatch.setattr(limits._table, "locked", counted)
        for number in range(requests):
            before, now = now, now + SECOND // a_second
            if now // (SECOND // 2) != before // (SECOND // 2):
                limits.return_past_leases()
            grant = limits.admit(key, 0, TokenCount(200, 100))
            assert grant is not None
            grant.settle(150, 100 + number % 30, None, failed=False)
    return locks


def test_a_key_in_rare_use_and_a_limit_that_is_near_have_no_lease(tmp_path: Path) -> None:
    now = 5000 * SECOND
    path = tmp_path / "limits.table"
    with closing(KeyLimits(path, 2, lambda: now)) as one, closing(KeyLimits(path, 2, lambda: now)) as other:
        key = replace(PLAIN, rpm=15)  # an eighth of it, divided by two workers, is no request
        for _ in range(7):
            one.admit(key, 0, TokenCount(0, 0))
            other.admit(key, 0, TokenCount(0, 0))
        one.admit(key, 0, TokenCount(0, 0))
        with pytest.raises(Limited):
            other.admit(key, 0, TokenCount(0, 0))


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_lease_admits_nothing_once_another_worker_has_exceeded_the_limit(tmp_path: Path, at_the_end: bool) -> None:
    now = 5000 * SECOND
    path = tmp_path / "limits.table"
    key = replace(PLAIN, tpm=10_000)
    with closing(KeyLimits(path, 2, lambda: now)) as one, closing(KeyLimits(path, 2, lambda: now)) as other:
        for _ in range(20):
            one.admit(key, 0, TokenCount(10, 0))
        grant = other.admit(key, 0, TokenCount(1 if at_the_end else 20_000, 0))
        assert grant is not None
        if at_the_end:
            assert _admits(one, key)
            grant.settle(20_000, 0, None, failed=False)
        assert not _admits(one, key)


_DYING = """
    import os, signal, sys
    from pathlib import Path
    from auditor.domain.keys import Key
    from gateway.limits.key_limits import KeyLimits, TokenCount
    key = Key(id="key_1", name="app", hash=b"", rpm=int(sys.argv[2]))
    limits = KeyLimits(Path(sys.argv[1]), 1, lambda: 5_000_000_000)
    for _ in range(100):
        limits.admit(key, 0, TokenCount(10, 0))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_worker_loses_at_most_its_lease_and_for_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "limits.table"
    command = [sys.executable, "-c", textwrap.dedent(_DYING), str(path), "1000"]
    killed = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": str(Path.cwd())})
    assert killed.returncode == -signal.SIGKILL
    key = replace(PLAIN, rpm=1000)
    now = 5 * SECOND
    with closing(KeyLimits(path, 1, lambda: now)) as limits:
        admitted = 0
        while _admits(limits, key):
            admitted += 1
        assert 900 - MOST_LEASED <= admitted <= 900
        now += SPAN * SECOND
        assert sum(_admits(limits, key) for _ in range(1001)) == 1000


def _admits(limits: KeyLimits, key: Key) -> bool:
    try:
        limits.admit(key, 0, TokenCount(10, 0))
    except Limited:
        return False
    return True
