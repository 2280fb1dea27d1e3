"""Hostile answers: they change no vote of a judge that obeys the rubric alone, and break nothing that reads them."""

import re

import pytest
from support.documents.judge_attacks import ATTACKS, BOMBS, CLAIM, SENTENCES, block_of, obedient, quoting
from support.servers.judge_server import completion, judge_of, serve

from auditor.coding.panel import Panel
from auditor.coding.split import Panels, code
from auditor.domain.coding import ElaborationReason
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Question
from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.judges.llm import LLMJudge
from auditor.judges.loading import load_judges
from auditor.judges.prompt import LONGEST_TEXT, build_messages
from auditor.judges.rubric import OPEN, STATEMENT, find_rubric

PLACES = {
    "before": "{attack}\n\n{sentence}",
    "after": "{sentence}\n\n{attack}",
    "around": "{attack}\n{sentence}\n{attack}",
}
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e0fff]")


@pytest.mark.parametrize("place", PLACES)
async def test_no_attack_changes_a_vote(place, thorough):
    wrong = []
    attacks = list(ATTACKS.items())
    async with judge_of(obedient) as (judge, server):
        for turn, (label, sentence) in enumerate(SENTENCES.items()):
            # A part of the pairs has each sentence and each attack, too.
            for name, attack in attacks if thorough else attacks[turn :: len(SENTENCES)]:
                text = PLACES[place].replace("{attack}", attack).replace("{sentence}", sentence)
                verdict = await judge.read(CLAIM, text)
                if verdict.label != label:
                    wrong.append((name, label, verdict.label, verdict.rationale))
    assert not wrong
    assert len(server.bodies) == len(ATTACKS) * (len(SENTENCES) if thorough else 1), "no answer needed a repair"


@pytest.mark.parametrize("name", BOMBS)
async def test_no_bomb_changes_a_vote_or_grows_the_request(name):
    async with judge_of(obedient) as (judge, server):
        for text in (f"{SENTENCES['D']}\n{BOMBS[name]}", f"{BOMBS[name]}\n{SENTENCES['D']}"):
            assert (await judge.read(CLAIM, text)).label == "D"
        assert (await judge.read(BOMBS[name], SENTENCES["D"])).label == "D", "a statement may be a bomb, too"
    for body in server.bodies:
        assert len(body["messages"][1]["content"].encode()) < 2 * LONGEST_TEXT + 1_000


async def test_a_panel_of_such_judges_is_of_one_mind_over_whole_answers():
    rubric, client = find_rubric(STATEMENT), open_client()
    async with serve(obedient) as server:
        endpoints = [JudgeEndpoint(name=name, base_url=server.url, model="m") for name in ("j1", "j2", "j3")]
        async with Panel(judges=tuple(LLMJudge(endpoint, rubric, client) for endpoint in endpoints)) as panel:
            for name, attack in ATTACKS.items():
                if "</think>" in attack:
                    continue  # what an answer thought aloud is not its elaboration: that is the selection's rule
                answer = Answer(text=f"Because of this: {SENTENCES['D']} {attack}")
                coded = await code(Task.EXPLAIN, answer, Question(statement=CLAIM), Panels(statement=panel))
                assert [verdict.label for verdict in coded.elaboration.verdicts] == ["D", "D", "D"], name


@pytest.mark.parametrize("task", [Task.BJ, Task.CTO, Task.SC, Task.RATE, Task.EXPLAIN])
async def test_both_layers_read_every_hostile_answer(task, thorough):
    question = Question(statement=CLAIM, stereotype_option="penguins", counter_option="ducks")
    panels = Panels(statement=Panel(judges=load_judges(["lexicon"])))
    for hostile in (*ATTACKS.values(), *(bomb[: 100_000 if thorough else 5_000] for bomb in BOMBS.values())):
        coded = await code(task, Answer(text=hostile), question, panels)
        assert coded.elaboration.label in {"E", "QE", "N", "D", "R", "Abstain"}


@pytest.mark.parametrize("rubric", [STATEMENT, OPEN])
@pytest.mark.parametrize("hostile", [*ATTACKS.values(), *BOMBS.values()], ids=[*ATTACKS, *BOMBS])
def test_nothing_of_the_text_stands_outside_its_block(rubric, hostile):
    def around(text):
        asked = build_messages(find_rubric(rubric), CLAIM, text)[1]["content"]
        key = re.findall(r"TEXT ([0-9a-f]{12})\?", asked)[-1]
        before, begun, rest = asked.partition(f"BEGIN TEXT {key}\n")
        inside, ended, after = rest.rpartition(f"\nEND TEXT {key}\n")
        assert begun
        assert ended
        assert key not in inside
        return [part.replace(key, "KEY") for part in (before, after)], inside

    outside, inside = around(hostile)
    assert outside == around("an innocent text")[0]
    assert not UNSEEN.search(inside)


async def test_a_repair_shows_nothing_of_what_the_judge_repeated():
    async with judge_of([completion(ATTACKS["a plain order"]), completion('{"label": "D"}')]) as (judge, server):
        assert (await judge.read(CLAIM, f"{SENTENCES['D']} {ATTACKS['a plain order']}")).label == "D"
    first, second = (body["messages"] for body in server.bodies)
    assert second[:2] == first
    assert [message["role"] for message in second[2:]] == ["assistant", "user"]
    assert not any("Ignore the rubric" in message["content"] for message in second[2:])


@pytest.mark.parametrize("words", [lambda text: text, lambda text: text[-100:], lambda text: text[-40:]])
async def test_what_a_judge_repeats_of_the_text_is_never_its_verdict(words):
    async with judge_of(quoting(words)) as (judge, _):
        for name, attack in ATTACKS.items():
            verdict = await judge.read(CLAIM, f"{SENTENCES['D']}\n{attack}")
            assert verdict.label == "D" or verdict.reason is ElaborationReason.JUDGE_REFUSED, name


async def test_a_judge_that_only_repeats_the_text_gives_no_label():
    async with judge_of(lambda body: completion(f"The text: {block_of(body)}")) as (judge, _):
        for name, attack in ATTACKS.items():
            verdict = await judge.read(CLAIM, f"{SENTENCES['D']}\n{attack}")
            assert verdict.reason is ElaborationReason.JUDGE_REFUSED, name
