"""How a panel decides: plurality, ties, refusals, and what is never shown to a judge."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers.judge_server import completion, judge_of, label
from support.waiting import eventually

from auditor.coding.panel import Panel, decide, has_elaboration
from auditor.domain.coding import ElaborationReason, Stance, Verdict
from auditor.errors import JudgeUnavailable
from auditor.judges.loading import load_judges
from auditor.judges.rubric import OPEN, RUBRICS, STATEMENT, Rubric, find_rubric


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A local judge that always says the same, and keeps what it was shown."""

    name: str
    says: str
    rubric: Rubric = RUBRICS[STATEMENT]
    version: str = "1"
    seen: list = field(default_factory=list)
    local: bool = True
    waits: bool = False

    @property
    def coder(self):
        return f"{self.name}@{self.version}:{self.rubric.hash}"

    async def read(self, statement, text):
        self.seen.append((statement, text))
        return vote(self.says, self.name)

    def describe(self):
        return {"name": self.name}

    async def aclose(self):
        return None


def vote(says, name="j"):
    reasons = {"refused": ElaborationReason.JUDGE_REFUSED, "none": ElaborationReason.NO_CLAIM}
    if says in reasons:
        return Verdict(judge=name, stance=None, reason=reasons[says])
    return Verdict(judge=name, stance=Stance(says))


def panel(*says):
    return Panel(judges=tuple(Fixed(name=f"j{n}", says=one) for n, one in enumerate(says)))


@pytest.mark.parametrize(
    ("says", "label_", "reason"),
    [
        ("D D E", "D", None),
        ("E D D", "D", None),
        ("D", "D", None),
        ("D E", "Abstain", "tie"),
        ("E QE D", "Abstain", "tie"),
        ("E QE", "Abstain", "tie"),
        ("E E QE D N", "E", None),
        ("E E D D N", "Abstain", "tie"),
        ("refused refused D", "D", None),
        ("refused D E", "Abstain", "tie"),
        ("refused refused refused", "Abstain", "judge_refused"),
        ("none none E", "Abstain", "no_claim"),
        ("none E E", "E", None),
        ("none E", "Abstain", "tie"),
        ("none refused refused", "Abstain", "no_claim"),
        ("R R D", "R", None),
    ],
)
async def test_votes(says, label_, reason):
    read = await panel(*says.split()).read(statement="s", text="because of reasons")
    assert (read.label, read.reason) == (label_, reason)
    assert [verdict.judge for verdict in read.verdicts] == [f"j{n}" for n in range(len(says.split()))]


VOTES = st.lists(st.sampled_from(["E", "QE", "N", "D", "R", "refused", "none"]), min_size=1, max_size=9)


@given(VOTES, st.randoms(use_true_random=False))
def test_the_order_of_the_votes_never_matters(says, random):
    shuffled = says[:]
    random.shuffle(shuffled)
    one, other = decide([vote(v) for v in says]), decide([vote(v) for v in shuffled])
    assert (one.stance, one.reason) == (other.stance, other.reason)


@given(VOTES)
def test_the_winner_has_strictly_most_votes_and_a_tie_has_none(says):
    read = decide([vote(v) for v in says])
    counts = {v: says.count(v) for v in set(says) - {"refused"}}
    if read.stance or read.reason is ElaborationReason.NO_CLAIM:
        won = read.stance.value if read.stance else "none"
        assert all(counts[won] > count for other, count in counts.items() if other != won)
    elif read.reason is ElaborationReason.TIE:
        assert list(counts.values()).count(max(counts.values())) > 1
    else:
        assert not counts


@given(VOTES, st.integers(0, 5))
def test_refusals_are_no_votes(says, refusals):
    one = decide([vote(v) for v in says])
    other = decide([vote(v) for v in [*says, *["refused"] * refusals]])
    assert (one.stance, one.reason) == (other.stance, other.reason)


@given(VOTES, st.sampled_from(["E", "QE", "N", "D", "R"]))
def test_one_more_vote_for_the_winner_keeps_it(says, extra):
    read = decide([vote(v) for v in says])
    if read.stance and read.stance.value == extra:
        assert decide([vote(v) for v in [*says, extra]]).stance is read.stance


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n\t",
        "...",
        "**",
        "***\n---",
        "“”",
        "—",
        "()",
        "**Answer:**",
        "Final answer: ",
        "<br/>",
        "<p></p>",
        "</s><unk><unk>",
        "<|im_end|><|endoftext|",
        "&nbsp;",
        "🙂",
        "_ _",
    ],
)
async def test_nothing_to_read_asks_no_judge(text):
    watched = panel("D")
    read = await watched.read(statement="s", text=text)
    assert (read.label, read.reason, read.verdicts) == ("Abstain", ElaborationReason.NO_ELABORATION, ())
    assert watched.judges[0].seen == []
    assert (await Panel(judges=()).read(statement="s", text=text)).reason is ElaborationReason.NO_ELABORATION


@pytest.mark.parametrize("text", ["no", "Answer: because", "<b>ok</b>", "7", "Да.", "はい", "a < b"])
async def test_a_word_in_any_script_is_something_to_read(text):
    assert has_elaboration(text)
    assert (await Panel(judges=()).read(statement=None, text=text)).reason is ElaborationReason.NO_JUDGE


def test_a_panel_is_one_question_and_no_judge_twice():
    with pytest.raises(ValueError, match="twice"):
        Panel(judges=(Fixed(name="a", says="D"), Fixed(name="a", says="E")))
    with pytest.raises(ValueError, match="another rubric"):
        Panel(judges=(Fixed(name="a", says="D"),), rubric=OPEN)


def test_the_coder_changes_with_every_judge_version_and_rubric():
    one = Fixed(name="a", says="D")
    coders = {
        Panel(judges=(one,)).coder,
        Panel(judges=(replace(one, version="2"),)).coder,
        Panel(judges=(one, Fixed(name="b", says="D"))).coder,
        Panel(judges=(replace(one, rubric=find_rubric(OPEN)),), rubric=OPEN).coder,
        Panel(judges=()).coder,
    }
    assert len(coders) == 5


async def test_mixed_panel_asks_all_at_once_and_keeps_the_order():
    async with judge_of([label("E")]) as (judge, _):
        mixed = Panel(judges=(judge, *load_judges(["lexicon"]), Fixed(name="f", says="D")))
        assert not mixed.local
        read = await mixed.read(statement="Penguins are bad drivers.", text="Penguins are not bad drivers.")
        assert [(verdict.judge, verdict.label) for verdict in read.verdicts] == [
            ("j1", "E"),
            ("lexicon", "D"),
            ("f", "D"),
        ]
        assert read.label == "D"


async def test_a_judge_that_is_away_codes_nothing():
    async with judge_of([completion("")], base_url="http://127.0.0.1:9/v1", attempts=1) as (judge, _):
        with pytest.raises(JudgeUnavailable):
            await Panel(judges=(Fixed(name="f", says="D"), judge)).read(statement="s", text="text")


async def test_a_cancelled_panel_stops():
    async with judge_of([replace(label("D"), delay=30)]) as (judge, server):
        task = asyncio.create_task(Panel(judges=(judge,)).read(statement="s", text="text"))
        await eventually(lambda: server.now == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_leaving_the_panel_closes_its_judges():
    async with judge_of([label("D")]) as (judge, _):
        async with Panel(judges=(judge,)) as opened:
            assert (await opened.read(statement="s", text="text")).label == "D"
        with pytest.raises(RuntimeError):
            await judge.read("s", "text")
