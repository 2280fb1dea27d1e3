"""An exchange's words: they are stored, shown and counted, so they do not change."""

import pytest
from support.stores.exchanges import exchange

from auditor.domain.exchange import Capture, Origin, Outcome


def test_the_words_are_those_of_the_interface() -> None:
    assert [str(origin) for origin in Origin] == ["client", "probe", "replay", "judge", "peer"]
    assert [str(outcome) for outcome in Outcome] == ["complete", "cut", "failed", "client_gone"]
    assert [str(capture) for capture in Capture] == ["off", "hashed", "full"]


@pytest.mark.parametrize("outcome", Outcome)
def test_only_a_whole_answer_is_complete(outcome: Outcome) -> None:
    assert exchange(outcome=outcome).complete is (outcome is Outcome.COMPLETE)


def test_an_exchange_does_not_change() -> None:
    with pytest.raises(AttributeError):
        exchange().status = 500  # type: ignore[misc] # the point of the test
