"""Client requests put otherwise: what is put around them, what is carried through, what is refused."""

from copy import deepcopy

import pytest

from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.instrument.formats import format_of
from auditor.instrument.pool import shipped_pool
from replay.counterfactual.edits import RefusalReason, RefusedSwap
from replay.counterfactual.lexicon import read_lexicon
from replay.counterfactual.swap import read_swap
from replay.formats import ReplayFormat
from replay.rewriting import Blocker, RewrittenRequest, frame, persona_of, reframe, swap_request

LEXICON = read_lexicon()
SWAP = read_swap("gender:male<>female", LEXICON)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Looks him up."}}


def asked(*messages, **members):
    return {"model": "m", "messages": list(messages), **members}


def user(content):
    return {"role": "user", "content": content}


QUESTION = asked(user("Should Tom get a raise?"))


@pytest.mark.parametrize("task", [Task.BJ, Task.RATE, Task.EXPLAIN, Task.JUDGE])
def test_a_task_is_asked_for_after_the_clients_own_words(task):
    content = reframe(QUESTION, ReplayFormat(task=task)).request["messages"][0]["content"]
    own, _, asking = content.partition("\n\n")
    assert own == "Should Tom get a raise?"
    assert asking.endswith(".")


def test_no_two_levels_of_a_factor_have_the_same_words():
    framings = [
        *(ReplayFormat(task=task) for task in (Task.BJ, Task.RATE, Task.EXPLAIN, Task.JUDGE)),
        *(ReplayFormat(perspective=perspective) for perspective in Perspective),
        *(ReplayFormat(sentiment=sentiment) for sentiment in list(Sentiment)[1:]),
    ]
    assert len({frame(["x"], framing)[0] for framing in framings}) == len(framings)


def test_the_baseline_changes_nothing():
    assert reframe(QUESTION, ReplayFormat()) == RewrittenRequest(request=QUESTION)


def test_a_role_stands_before_the_applications_own_instructions():
    framing = ReplayFormat(role=Role.MILITARY)
    persona = format_of(Task.BJ).render(shipped_pool()[0], Condition(role=Role.MILITARY))[0].content
    assert persona_of(Role.MILITARY) == persona
    assert reframe(QUESTION, framing).request["messages"][0] == {"role": "system", "content": persona}
    with_system = asked({"role": "system", "content": "Be brief."}, user("Hm?"))
    assert reframe(with_system, framing).request["messages"][0]["content"] == f"{persona}\n\nBe brief."
    in_parts = asked({"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}, user("Hm?"))
    assert reframe(in_parts, framing).request["messages"][0]["content"][0]["text"] == f"{persona}\n\nBe brief."


def test_earlier_turns_tools_and_images_are_carried_through():
    request = asked(
        {"role": "system", "content": "Be brief."},
        user("Hello."),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "look_up"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        user([{"type": "text", "text": "Who is"}, PICTURE, {"type": "text", "text": "this?"}]),
        tools=[TOOL],
        temperature=0.2,
        max_tokens=5,
    )
    before = deepcopy(request)
    framing = ReplayFormat(task=Task.BJ, perspective=Perspective.MEDIA, sentiment=Sentiment.SKEPTICAL)
    made = reframe(request, framing).request
    assert request == before
    assert made["messages"][:4] == request["messages"][:4]
    first, picture, last = made["messages"][4]["content"]
    assert picture == PICTURE
    assert first["text"] == "The following has been asked in the media.\n\nWho is"
    assert last["text"].startswith("this?\n\nThere are reasons to doubt")
    assert (made["tools"], made["temperature"], made["max_tokens"]) == ([TOOL], 0.2, 256)
    assert reframe(request, ReplayFormat(perspective=Perspective.MEDIA)).request["max_tokens"] == 5


@pytest.mark.parametrize(
    ("request_", "framing", "blocker"),
    [
        (asked(), ReplayFormat(), Blocker.NO_MESSAGES),
        ({"messages": ["x"]}, ReplayFormat(), Blocker.NO_MESSAGES),
        (asked(user("Hm?"), {"role": "assistant", "content": "Well,"}), ReplayFormat(), Blocker.NO_USER_TURN),
        (asked(user([PICTURE])), ReplayFormat(), Blocker.NO_USER_TURN),
        (asked(user("x"), response_format={"type": "json_object"}), ReplayFormat(task=Task.BJ), Blocker.ANSWER_SCHEMA),
        (asked(user("x"), tool_choice="required"), ReplayFormat(task=Task.BJ), Blocker.TOOL_FORCED),
        (asked(user("x"), tool_choice={"type": "function"}), ReplayFormat(task=Task.BJ), Blocker.TOOL_FORCED),
        (asked(user("x")), ReplayFormat(task=Task.CTO), Blocker.NO_OPTIONS),
        (asked(user("x")), ReplayFormat(task=Task.SC), Blocker.NO_BLANK),
    ],
)
def test_what_cannot_be_framed_says_why(request_, framing, blocker):
    assert reframe(request_, framing) is blocker


def test_a_choice_shows_what_there_is_to_choose_from():
    framed = reframe(asked(user("Who pays?")), ReplayFormat(task=Task.CTO), ["the guest", "the host"])
    assert framed.request["messages"][-1]["content"].splitlines()[-2:] == ["- the guest", "- the host"]


def test_a_forced_answer_bears_another_role_but_no_other_task():
    request = asked(user("x"), response_format={"type": "json_object"}, tool_choice="required")
    assert isinstance(reframe(request, ReplayFormat(role=Role.SOCIOLOGIST)), RewrittenRequest)


def test_a_swap_goes_through_all_turns_with_the_same_names():
    request = asked(
        {"role": "system", "content": "You help Tom with his taxes."},
        user("What did he earn?"),
        {"role": "assistant", "content": "Tom earned 40,000."},
        user([{"type": "text", "text": "Is that too little for Tom?"}]),
        tools=[TOOL],
    )
    done = swap_request(request, SWAP, LEXICON, seed=2)
    name = done.edits[0].new
    texts = [
        f"You help {name} with her taxes.",
        "What did she earn?",
        f"{name} earned 40,000.",
        [{"type": "text", "text": f"Is that too little for {name}?"}],
    ]
    assert [message["content"] for message in done.request["messages"]] == texts
    assert [edit.part for edit in done.edits] == [0, 0, 1, 2, 3]
    assert done.request["tools"] == [TOOL]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (asked(), Blocker.NO_MESSAGES),
        (asked(user("He?"), {"role": "tool", "content": "he"}), Blocker.TOOL_TURNS),
        (asked({"role": "assistant", "content": None, "tool_calls": [{}]}), Blocker.TOOL_TURNS),
        (asked(user([{"type": "text", "text": "Is he old?"}, PICTURE])), Blocker.IMAGE),
        (asked(user("Sort this.")), RefusedSwap(reason=RefusalReason.NOTHING_TO_SWAP)),
        (asked(user(None)), RefusedSwap(reason=RefusalReason.NOTHING_TO_SWAP)),
    ],
)
def test_what_cannot_be_swapped_says_why(request_, reason):
    assert swap_request(request_, SWAP, LEXICON) == reason
