"""Sampling: decided by seed and key alone, nested, and the share that was asked for."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.domain.sampling import sampled

RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**63 - 1)
MANY = [number.to_bytes(16, "big") for number in range(100_000)]


def within(count: int, n: int, share: float) -> bool:
    """Whether a count lies within 4.5 standard deviations of a binomial: once in 150,000 it would not by chance."""
    return abs(count - n * share) <= 4.5 * math.sqrt(n * share * (1 - share)) + 1


@given(SEEDS, st.binary(max_size=64), RATES)
def test_the_same_question_has_the_same_answer(seed: int, key: bytes, rate: float) -> None:
    assert sampled(seed, key, rate) is sampled(seed, key, rate)


def test_another_process_decides_alike() -> None:
    """Workers, restarts and hosts agree: nothing of the process enters, such as Python's own hash seed."""
    asking = "from auditor.domain.sampling import sampled; print([sampled(7, b'%d' % n, 0.5) for n in range(64)])"
    answers = {
        subprocess.run(
            [sys.executable, "-c", asking], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert answers == {str([sampled(7, b"%d" % n, 0.5) for n in range(64)])}


def test_the_decisions_never_change() -> None:
    """Stored inclusion probabilities rest on them: a change would need a migration of meaning, not of code."""
    kept = [number for number in range(40) if sampled(0, b"%d" % number, 0.25)]
    assert kept == [0, 2, 9, 13, 14, 15, 16, 17, 19, 25, 31, 33, 34, 35]


@given(SEEDS, st.binary(max_size=64), RATES, RATES)
def test_what_is_kept_at_a_rate_is_kept_at_every_higher_one(seed: int, key: bytes, one: float, other: float) -> None:
    low, high = sorted([one, other])
    assert sampled(seed, key, high) or not sampled(seed, key, low)


@given(SEEDS, st.binary(max_size=64))
def test_nothing_and_everything(seed: int, key: bytes) -> None:
    assert not sampled(seed, key, 0.0)
    assert sampled(seed, key, 1.0)


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_the_share_is_the_rate(rate: float, seed: int) -> None:
    assert within(sum(sampled(seed, key, rate) for key in MANY), len(MANY), rate)


def test_the_seed_decides_which() -> None:
    """Two seeds agree on a quarter and a quarter at rate 1/2, as independent draws do."""
    both = sum(sampled(1, key, 0.5) and sampled(2, key, 0.5) for key in MANY)
    assert within(both, len(MANY), 0.25)


def test_neighbouring_keys_are_independent() -> None:
    both = sum(
        sampled(0, one, 0.5) and sampled(0, other, 0.5) for one, other in zip(MANY[::2], MANY[1::2], strict=True)
    )
    assert within(both, len(MANY) // 2, 0.25)


@pytest.mark.parametrize("key", [b"", b"x" * 10_000])
def test_a_key_of_any_length_is_decided(key: bytes) -> None:
    assert sampled(0, key, 0.5) in {True, False}
