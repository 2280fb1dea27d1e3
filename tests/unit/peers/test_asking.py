"""Rounds: the same questions make the same calls, and another pass or another word makes others."""

from dataclasses import replace

from auditor.peers.asking import Round
from auditor.peers.domains import Domain, PeerQuestion
from auditor.probes.send import CallTarget

QUESTIONS = tuple(PeerQuestion(id=f"q{n}", theme=f"t{n % 3}", text=f"Why is {n} a number?") for n in range(30))
DOMAIN = Domain(
    name="numbers", description="Numbers.", target="evasion", instruction="Represent the answer:", version="1",
    questions=QUESTIONS,
)  # fmt: skip
TARGET = CallTarget(
    deployment="d", model="m", in_flight=1, timeout=1.0, price=lambda prompt, completion: (prompt + completion) / 1000
)


def test_a_round_is_made_of_its_words_its_pass_and_its_seed() -> None:
    first = Round(domain=DOMAIN, number=3)
    assert first.id == Round(domain=DOMAIN, number=3).id
    changed = replace(DOMAIN, questions=(replace(QUESTIONS[0], text="Why is 0 no number?"), *QUESTIONS[1:]))
    others = {Round(domain=changed, number=3).id, Round(domain=DOMAIN, number=4).id}
    others |= {Round(domain=DOMAIN, number=3, seed=1).id}
    assert len(others | {first.id}) == 4


def test_every_question_is_asked_once_in_an_order_that_the_round_shuffles() -> None:
    one, other = Round(domain=DOMAIN, number=0), Round(domain=DOMAIN, number=1)
    assert sorted(one.questions, key=lambda each: each.id) == sorted(QUESTIONS, key=lambda each: each.id)
    assert one.questions not in (QUESTIONS, other.questions)
    outgoing = list(one.outgoing(TARGET, ()))
    assert [call.messages[0].content for call in outgoing] == [each.text for each in one.questions]
    refs = {call.ref for call in outgoing}
    assert len(refs) == 30
    assert all(len(ref) <= 64 and ref.startswith(one.id) for ref in refs)
    elsewhere = {call.ref for call in one.outgoing(replace(TARGET, deployment="e"), ())}
    assert not refs & elsewhere


def test_what_is_answered_is_not_asked_again() -> None:
    asked = Round(domain=DOMAIN, number=0)
    answered = {asked.call("d", each).ref for each in asked.questions[:28]}
    left = list(asked.outgoing(TARGET, answered))
    assert [call.messages[0].content for call in left] == [each.text for each in asked.questions[28:]]
    assert all(call.usd > 0 for call in left)
