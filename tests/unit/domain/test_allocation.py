"""Places of a stratified draw: all are given, as evenly as the strata's sizes allow, and one more takes none away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.domain.sampling import allocate

strata = st.dictionaries(st.text(max_size=3), st.integers(1, 60), min_size=1, max_size=12)


@given(strata, st.integers(0, 300))
def test_all_places_are_given_as_evenly_as_can_be(sizes: dict[str, int], more: int) -> None:
    n = len(sizes) + more
    takes = allocate(sizes, n)
    assert sum(takes.values()) == min(n, sum(sizes.values()))
    assert all(1 <= takes[name] <= size for name, size in sizes.items())
    open_ones = [takes[name] for name, size in sizes.items() if takes[name] < size]
    assert max(open_ones, default=0) - min(open_ones, default=0) <= 1
    assert max(takes.values()) <= min(open_ones, default=60) + 1


@given(strata, st.integers(0, 100))
def test_one_place_more_takes_none_away(sizes: dict[str, int], more: int) -> None:
    few, many = allocate(sizes, len(sizes) + more), allocate(sizes, len(sizes) + more + 1)
    assert all(few[name] <= many[name] for name in sizes)


def test_strata_without_a_place_are_refused() -> None:
    with pytest.raises(ValueError, match="3 strata, and 2 to draw"):
        allocate({"a": 1, "b": 1, "c": 9}, 2)
