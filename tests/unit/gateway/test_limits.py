"""Limits of client keys: a minute of requests and of tokens, a budget; shared by processes, exact in each."""

import json
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from auditor.config import Price
from auditor.domain.keys import Key, hash_secret
from gateway.errors import Limited
from gateway.limits.key_limits import FULL_AT, SPENT, WIDTH, Grant, KeyLimits, TokenCount
from gateway.shared import SharedTable
from gateway.wire import MOST_TOKENS

SECOND = 1_000_000_000
PLAIN = Key(id="key_1", name="app", hash=hash_secret("sk-1"))
PRICE = Price(input=2.5, output=10)
NOTHING = TokenCount(0, 0)


@dataclass
class Clock:
    """A clock that is set."""

    now: int = 5000 * SECOND

    def __call__(self) -> int:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gateway" / "limits.table"


@pytest.fixture
def limits(path: Path, clock: Clock) -> Iterator[KeyLimits]:
    made = KeyLimits(path, clock=clock)
    yield made
    made.close()


def admitted(limits: KeyLimits, key: Key, tokens: TokenCount = NOTHING, spent_elsewhere: int = 0) -> Grant:
    grant = limits.admit(key, spent_elsewhere, tokens)
    assert grant is not None
    return grant


def refused(limits: KeyLimits, key: Key, tokens: TokenCount = NOTHING, spent_elsewhere: int = 0) -> Limited:
    with pytest.raises(Limited) as refusal:
        limits.admit(key, spent_elsewhere, tokens)
    return refusal.value


def spent(path: Path, key: Key) -> int:
    with closing(SharedTable(path, WIDTH)) as table:
        return int(table.row(key.id)[SPENT])


# --- requests --------------------------------------------------------------------------------------------------------


def test_a_key_without_limits_is_not_counted(limits: KeyLimits, path: Path) -> None:
    assert limits.admit(PLAIN, 0, TokenCount(10, 10)) is None
    with closing(SharedTable(path, WIDTH)) as table:
        assert list(table.rows()) == []


def test_so_many_requests_a_minute_and_no_more_until_the_first_is_a_minute_old(limits: KeyLimits, clock: Clock) -> None:
    key = replace(PLAIN, rpm=3)
    for _ in range(3):
        admitted(limits, key)
        clock.passes(10)
    for _ in range(100):
        refused(limits, key)  # takes nothing
    wait = int(refused(limits, key).headers()["retry-after"])
    assert wait == 31
    clock.passes(wait - 0.001)
    refused(limits, key)
    clock.passes(0.001)
    admitted(limits, key)
    assert refused(limits, key).headers()["retry-after"] == "10"


def test_each_key_has_its_own_minute(limits: KeyLimits) -> None:
    for number in range(50):
        key = replace(PLAIN, id=f"key_{number}", rpm=1)
        admitted(limits, key)
        refused(limits, key)


def test_a_refusal_says_what_openai_s_says(limits: KeyLimits, clock: Clock) -> None:
    key = replace(PLAIN, rpm=2, tpm=1000)
    admitted(limits, key, TokenCount(100, 50))
    clock.passes(20.5)
    admitted(limits, key)
    error = refused(limits, key)
    assert error.http_status == 429
    assert error.headers() == {
        "retry-after": "41",
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1m1s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "850",
        "x-ratelimit-reset-tokens": "41s",
    }
    assert json.loads(error.body()) == {
        "error": {
            "message": "This key has used up its 2 requests a minute. Try again in 41 s.",
            "type": "requests",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }


def test_headers_tell_of_the_limits_that_there_are(limits: KeyLimits) -> None:
    key = replace(PLAIN, tpm=10)
    admitted(limits, key, TokenCount(8, 8))
    error = refused(limits, key)
    told = {name: value for name, value in error.headers().items() if name.startswith("x-ratelimit")}
    assert told == {
        "x-ratelimit-limit-tokens": "10",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m1s",
    }
    assert json.loads(error.body())["error"]["type"] == "tokens"


def test_of_two_limits_the_one_that_lasts_longer_is_told(limits: KeyLimits, clock: Clock) -> None:
    key = replace(PLAIN, rpm=2, tpm=100)
    admitted(limits, key)
    clock.passes(30)
    admitted(limits, key, TokenCount(100, 0))
    error = refused(limits, key)
    assert (json.loads(error.body())["error"]["type"], error.retry_after) == ("tokens", 61)


def test_a_limit_that_was_lowered_holds_at_once(limits: KeyLimits, clock: Clock) -> None:
    for _ in range(5):
        admitted(limits, replace(PLAIN, rpm=5))
        clock.passes(1)
    assert refused(limits, replace(PLAIN, rpm=2)).retry_after == 61 - 5 + 3
    assert refused(limits, replace(PLAIN, rpm=2)).headers()["x-ratelimit-remaining-requests"] == "0"
    admitted(limits, replace(PLAIN, rpm=6))


def test_no_request_at_all_is_a_limit_too(limits: KeyLimits) -> None:
    assert refused(limits, replace(PLAIN, rpm=0)).retry_after == 1


# --- tokens ----------------------------------------------------------------------------------------------------------


def remaining(limits: KeyLimits, key: Key) -> int:
    """Tokens that are left, as a refusal for another reason tells them."""
    error = refused(limits, replace(key, rpm=0))
    return int(error.headers()["x-ratelimit-remaining-tokens"])


@pytest.mark.parametrize(
    ("prompt", "completion", "failed", "left"),
    [
        (30, 20, False, 950),  # fewer than reserved
        (300, 200, False, 500),  # more
        (30, None, False, 970),  # embeddings write nothing
        (None, 20, False, 980),
        (None, None, False, 900),  # an answer that reports nothing has used what was reserved
        (None, None, True, 1000),
        (30, 20, True, 950),  # failed, but not before it had cost something
        (0, 0, False, 1000),
    ],
)
def test_what_was_reserved_is_replaced_by_what_was_used(
    limits: KeyLimits, prompt: int | None, completion: int | None, failed: bool, left: int
) -> None:
    key = replace(PLAIN, tpm=1000)
    grant = admitted(limits, key, TokenCount(60, 40))
    assert remaining(limits, key) == 900
    for _ in range(3):
        grant.settle(prompt, completion, None, failed=failed)
        assert remaining(limits, key) == left
    grant.settle(7, 7, None, failed=not failed)
    assert remaining(limits, key) == left


@pytest.mark.parametrize(
    ("prompt", "completion", "failed", "answer_bytes", "left"),
    [
        (None, None, False, 4 * 39, 900),  # no more than the reserved output
        (None, None, False, 4 * 500, 1000 - 60 - 500),
        (30, 20, False, 4 * 500, 950),
        (None, None, True, 4 * 500, 1000),
    ],
)
def test_an_answer_without_usage_has_used_at_least_what_its_bytes_are(
    limits: KeyLimits, prompt: int | None, completion: int | None, failed: bool, answer_bytes: int, left: int
) -> None:
    key = replace(PLAIN, tpm=1000)
    grant = admitted(limits, key, TokenCount(60, 40))
    grant.settle(prompt, completion, None, failed=failed, answer_bytes=answer_bytes)
    assert remaining(limits, key) == left


def test_a_request_is_let_in_while_any_of_the_minute_is_left(limits: KeyLimits) -> None:
    key = replace(PLAIN, tpm=100)
    admitted(limits, key, TokenCount(99, 0))
    grant = admitted(limits, key, TokenCount(5000, 0))
    refused(limits, key)
    grant.settle(None, None, None, failed=True)
    admitted(limits, key)


def test_tokens_count_from_the_admission_and_those_beyond_the_reservation_from_the_end(
    limits: KeyLimits, clock: Clock
) -> None:
    key = replace(PLAIN, tpm=1000)
    grant = admitted(limits, key, TokenCount(100, 0))
    clock.passes(40)
    grant.settle(100, 500, None, failed=False)
    assert remaining(limits, key) == 400
    clock.passes(21)
    assert remaining(limits, key) == 500
    clock.passes(40)
    assert remaining(limits, key) == 1000


def test_an_answer_longer_than_a_minute_is_counted_when_it_ends(limits: KeyLimits, clock: Clock) -> None:
    key = replace(PLAIN, tpm=1000)
    long, short = admitted(limits, key, TokenCount(100, 0)), admitted(limits, key, TokenCount(100, 0))
    clock.passes(300)
    assert remaining(limits, key) == 1000
    long.settle(100, 700, None, failed=False)
    short.settle(10, 0, None, failed=False)  # its reservation is no longer there to be given back
    assert remaining(limits, key) == 300


@pytest.mark.parametrize("asked", [-5, -(10**30)])
def test_less_than_nothing_gives_no_room(limits: KeyLimits, asked: int) -> None:
    key = replace(PLAIN, tpm=1000)
    admitted(limits, key, TokenCount(10, asked))
    assert remaining(limits, key) == 990


def test_any_number_of_tokens_can_be_asked_for_and_reported(limits: KeyLimits, path: Path) -> None:
    key = replace(PLAIN, tpm=2**31 - 1, budget=1.0)
    for _ in range(3):
        grant = admitted(limits, key, TokenCount(10**30, 10**30))
        assert remaining(limits, key) == 0
        grant.settle(None, None, None, failed=True)
    admitted(limits, key).settle(MOST_TOKENS, MOST_TOKENS, Price(input=1e300, output=1e300), failed=False)
    assert spent(path, key) == 10**18
    with closing(SharedTable(path, WIDTH)) as table:
        table.row(key.id)[SPENT] = 0
    for _ in range(20):
        limits.admit(replace(key, tpm=None, budget=1e12), 0, NOTHING).settle(  # type: ignore[union-attr]
            MOST_TOKENS, MOST_TOKENS, Price(input=1e308, output=1e308), failed=False
        )
    assert spent(path, key) == 10**18


# --- money -----------------------------------------------------------------------------------------------------------


def test_a_budget_is_spent_by_what_was_reported_at_the_deployment_s_price(limits: KeyLimits, path: Path) -> None:
    key = replace(PLAIN, budget=0.01)
    admitted(limits, key).settle(1000, 500, PRICE, failed=False)
    assert spent(path, key) == 7_500_000  # 1000 x 2.5 + 500 x 10 millionths of a dollar
    admitted(limits, key).settle(999, 0, PRICE, failed=False)
    assert spent(path, key) == 9_997_500
    admitted(limits, key).settle(1, 0, PRICE, failed=False)
    error = refused(limits, key)
    assert (error.http_status, error.headers()) == (429, {"x-should-retry": "false"})
    assert json.loads(error.body()) == {
        "error": {
            "message": "This key has spent its budget of 0.01 USD.",
            "type": "insufficient_quota",
            "param": None,
            "code": "insufficient_quota",
        }
    }
    admitted(limits, replace(key, budget=0.02))


def test_one_token_of_the_cheapest_price_is_counted(limits: KeyLimits, path: Path) -> None:
    key = replace(PLAIN, budget=1.0)
    for _ in range(10):
        admitted(limits, key).settle(1, 0, Price(input=0.001, output=0), failed=False)
    assert spent(path, key) == 10


@pytest.mark.parametrize(
    ("reported", "price", "failed", "cost"),
    [
        ((None, None), PRICE, True, 0),
        ((None, None), PRICE, False, 650_000),  # the client left before the usage came: what was reserved
        ((10, 5), None, False, 0),  # a deployment without a price
        ((10, None), PRICE, False, 25_000),
        ((10, 5), PRICE, True, 75_000),
    ],
)
def test_what_an_end_costs(
    limits: KeyLimits,
    path: Path,
    reported: tuple[int | None, int | None],
    price: Price | None,
    failed: bool,
    cost: int,
) -> None:
    key = replace(PLAIN, budget=1.0)
    grant = admitted(limits, key, TokenCount(100, 40))
    for _ in range(2):
        grant.settle(*reported, price, failed=failed)
    assert spent(path, key) == cost


def test_what_was_spent_elsewhere_counts(limits: KeyLimits) -> None:
    key = replace(PLAIN, budget=1.0)
    admitted(limits, key, spent_elsewhere=999_999_999).settle(1, 0, PRICE, failed=False)
    refused(limits, key, spent_elsewhere=10**9 - 2500)
    admitted(limits, key, spent_elsewhere=10**9 - 2501)
    refused(limits, key, spent_elsewhere=10**25)


def test_a_spent_budget_is_told_before_a_full_minute_and_takes_nothing_of_it(limits: KeyLimits) -> None:
    key = replace(PLAIN, rpm=1, budget=1.0)
    assert refused(limits, key, spent_elsewhere=10**9).code == "insufficient_quota"
    admitted(limits, key)
    assert refused(limits, key).code == "rate_limit_exceeded"
    assert refused(limits, key, spent_elsewhere=10**9).code == "insufficient_quota"


def test_nothing_is_spent_by_a_key_without_a_budget(limits: KeyLimits, path: Path) -> None:
    key = replace(PLAIN, rpm=10, tpm=10**6)
    admitted(limits, key).settle(1000, 1000, PRICE, failed=False)
    assert spent(path, key) == 0


# --- lives of processes and machines ---------------------------------------------------------------------------------


def test_a_worker_that_starts_again_goes_on_counting(path: Path, clock: Clock) -> None:
    key = replace(PLAIN, rpm=2, tpm=100, budget=1.0)
    for _ in range(2):
        worker = KeyLimits(path, clock=clock)
        admitted(worker, key, TokenCount(10, 0)).settle(10, 0, PRICE, failed=False)
        worker.close()
    worker = KeyLimits(path, clock=clock)
    refused(worker, key)
    assert remaining(worker, key) == 80
    assert spent(path, key) == 50_000
    worker.close()


def test_after_the_machine_s_restart_the_minute_is_over_and_what_was_spent_is_spent(path: Path) -> None:
    key = replace(PLAIN, rpm=1, tpm=100, budget=0.01)
    before = KeyLimits(path, clock=Clock(10**6 * SECOND))
    admitted(before, key, TokenCount(200, 0)).settle(1000, 0, PRICE, failed=False)
    before.close()
    after = KeyLimits(path, clock=Clock(3 * SECOND))
    admitted(after, key).settle(3000, 0, PRICE, failed=False)
    assert refused(after, key).code == "insufficient_quota"
    after.close()


_SHARING = """
    import sys
    from pathlib import Path
    from auditor.config import Price
    from auditor.domain.keys import Key
    from gateway.errors import Limited
    from gateway.limits.key_limits import KeyLimits, TokenCount
    key = Key(id="key_1", name="app", hash=b"", rpm=int(sys.argv[2]), tpm=int(sys.argv[3]), budget=1000.0)
    limits = KeyLimits(Path(sys.argv[1]), 2, lambda: 5_000_000_000)
    print("ready", flush=True)
    sys.stdin.readline()
    admitted = 0
    for _ in range(4000):
        try:
            grant = limits.admit(key, 0, TokenCount(10, 0))
        except Limited:
            continue
        admitted += 1
        grant.settle(7, 0, Price(input=1, output=1), failed=False)
    limits.return_leases()
    print(admitted, flush=True)
    sys.stdin.readline()
    limits.admit(key, 0, TokenCount(10, 0))
"""
MANY = 2**31 - 1


@pytest.fixture
def sharing(path: Path) -> Iterator[Callable[[int, int], list[int]]]:
    """Run two processes that ask all at once; how many requests each was granted."""
    started: list[subprocess.Popen[str]] = []

    def line(process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def run(rpm: int, tpm: int) -> list[int]:
        command = [sys.executable, "-c", textwrap.dedent(_SHARING), str(path), str(rpm), str(tpm)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.extend(subprocess.Popen(command, **pipes) for _ in range(2))
        assert [line(process) for process in started] == ["ready"] * 2
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [int(line(process)) for process in started]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_two_processes_share_a_limit_of_requests_exactly(sharing: Callable[[int, int], list[int]], path: Path) -> None:
    assert sum(sharing(3000, MANY)) == 3000
    assert spent(path, PLAIN) == 3000 * 7 * 1000


@pytest.mark.slow
def test_two_processes_share_a_limit_of_tokens_within_one_request(
    sharing: Callable[[int, int], list[int]], path: Path
) -> None:
    used = 7 * sum(sharing(MANY, 21_000))
    assert 21_000 <= used <= 21_000 + 10
    assert spent(path, PLAIN) == used * 1000


def test_a_killed_worker_s_reservations_age(sharing: Callable[[int, int], list[int]], path: Path) -> None:
    key = replace(PLAIN, rpm=MANY, tpm=7 * 8000 + 11)
    assert sum(sharing(MANY, MANY)) == 8000
    # Both are at rest with all of it counted; a worker that dies now with a request in flight looks like this one.
    clock = Clock(5 * SECOND)
    worker = KeyLimits(path, clock=clock)
    admitted(worker, key, TokenCount(11, 0))
    worker.close()
    other = KeyLimits(path, clock=clock)
    refused(other, key)
    clock.passes(61)
    admitted(other, key)
    other.close()


# --- 10^5 random steps -----------------------------------------------------------------------------------------------


@dataclass
class Model:
    """A key's limits from lists of all that happened."""

    rpm: int
    tpm: int
    budget: int
    requests: list[int] = field(default_factory=list)
    tokens: list[tuple[int, int]] = field(default_factory=list)
    spent: int = 0

    def admits(self, second: int) -> bool:
        self.requests = [one for one in self.requests if second - one <= 60]
        self.tokens = [one for one in self.tokens if second - one[0] <= 60]
        used = sum(amount for _, amount in self.tokens)
        return self.spent < self.budget and len(self.requests) < self.rpm and used < self.tpm


@pytest.mark.parametrize("seed", range(2))
def test_two_workers_keep_to_the_model_through_random_steps(
    path: Path, clock: Clock, seed: int, thorough: bool
) -> None:
    chance = random.Random(seed)
    workers = [KeyLimits(path, 2, clock), KeyLimits(path, 2, clock)]
    key = replace(PLAIN, rpm=20, tpm=2000, budget=0.1)
    model = Model(20, 2000, 100_000_000)
    in_flight: list[tuple[Grant, int, int]] = []
    outcomes = {True: 0, False: 0}
    steps = 50_000 if thorough else 5_000
    for _ in range(steps):
        clock.passes(chance.choice((0, 0.01, chance.uniform(0, 3), 60 if chance.random() < 0.01 else 0)))
        second = clock.now // SECOND
        if in_flight and chance.random() < 0.5:
            grant, begun, reserved = in_flight.pop(chance.randrange(len(in_flight)))
            used, failed = chance.choice((None, chance.randrange(400))), chance.random() < 0.3
            grant.settle(used, None, PRICE, failed=failed)
            final = used if used is not None else 0 if failed else reserved
            model.tokens.append((second if final > reserved else begun, final - reserved))
            model.spent += final * 2500
        else:
            asked = chance.randrange(300)
            admits = model.admits(second)
            outcomes[admits] += 1
            if admits:
                model.requests.append(second)
                model.tokens.append((second, asked))
                in_flight.append((admitted(chance.choice(workers), key, TokenCount(asked, 0)), second, asked))
            else:
                error = refused(chance.choice(workers), key)
                assert (error.code == "insufficient_quota") == (model.spent >= model.budget)
                if model.spent >= model.budget:
                    model.budget += 100_000_000
                    key = replace(key, budget=model.budget / 1e9)
    assert min(outcomes.values()) > steps // 10
    assert model.budget > (3 if thorough else 2) * 100_000_000
    assert spent(path, key) == model.spent
    for worker in workers:
        worker.close()


@pytest.mark.parametrize(("used", "is_full"), [(60, False), (100, True)])
def test_a_limit_is_noted_as_reached_when_it_is(
    limits: KeyLimits, path: Path, clock: Clock, used: int, is_full: bool
) -> None:
    key = replace(PLAIN, tpm=100)
    admitted(limits, key, TokenCount(10, 0)).settle(used, 0, None, failed=False)
    with closing(SharedTable(path, WIDTH)) as table:
        assert (table.row(key.id)[FULL_AT] == clock() // SECOND) is is_full
