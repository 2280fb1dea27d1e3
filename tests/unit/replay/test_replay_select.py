"""`--select`: what it understands, and in one line what it does not."""

from datetime import UTC, datetime

import pytest

from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from replay.selection import DrawMethod, read_selection


def test_everything_can_be_said():
    text = "deployment=a,origin=probe,task=bj,plan=p-1,from=2026-03-01,to=2026-03-08T12:00:00+02:00,limit=200"
    selection = read_selection(text)
    assert (selection.deployment, selection.origin, selection.task) == ("a", Origin.PROBE, Task.BJ)
    assert (selection.plan, selection.limit) == ("p-1", 200)
    assert selection.since == datetime(2026, 3, 1, tzinfo=UTC)
    assert selection.until == datetime(2026, 3, 8, 10, tzinfo=UTC)


def test_tags_routes_and_the_manner_of_drawing_can_be_said():
    selection = read_selection("tag.tenant=a b,route=*,tag.desk=x,limit=20,seed=7,draw=traffic")
    assert selection.tags == (("desk", "x"), ("tenant", "a b"))
    assert (selection.route, selection.limit, selection.seed, selection.draw) == ("*", 20, 7, DrawMethod.TRAFFIC)
    assert read_selection(selection.canonical) == selection


def test_what_is_usual_does_not_change_what_a_selection_is_called():
    assert read_selection("limit=3,seed=0,draw=even").canonical == "limit=3"


def test_order_and_spelling_do_not_matter_to_what_it_is():
    one = read_selection("task=BJ, deployment=a, from=2026-03-01")
    other = read_selection("deployment=a,from=2026-03-01T00:00:00Z,task=bj")
    assert one == other
    assert one.canonical == other.canonical


def test_a_selection_is_read_back_from_its_canonical_form():
    selection = read_selection("deployment=a,origin=client,from=2026-03-01T10:20:30,limit=3")
    assert read_selection(selection.canonical) == selection


def test_all_is_probes_and_clients_and_never_what_was_itself_replayed():
    assert read_selection("all").origins == (Origin.PROBE, Origin.CLIENT)
    assert read_selection("origin=client").origins == (Origin.CLIENT,)


@pytest.mark.parametrize("text", ["task=CTO", "plan=p"])
def test_only_probes_have_a_task_and_a_plan(text):
    assert read_selection(text).origins == (Origin.PROBE,)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "KEY=VALUE"),
        ("model=x", "deployment, origin, task"),
        ("task", "'task'"),
        ("task=", "task has no value"),
        ("task=XX", "BJ, SC, CTO"),
        ("origin=judge", "probe, client"),
        ("origin=replay", "probe, client"),
        ("task=BJ,task=SC", "twice"),
        ("from=someday", "2026-03-01"),
        ("to=2026-13-01", "to must be"),
        ("from=2026-03-02,to=2026-03-02", "before"),
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=1.5", "limit"),
        ("limit=²", "limit"),
        ("limit=5,seed=-1", "seed"),
        ("limit=5,draw=fair", "even, traffic"),
        ("seed=1", "without limit"),
        ("draw=even", "without limit"),
        ("tag.=x", "KEY=VALUE"),
        ("tag.tenant=", "tag.tenant has no value"),
        ("origin=client,task=BJ", "client traffic has no task"),
        ("deployment=a,,task=BJ", "KEY=VALUE"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(text, named):
    with pytest.raises(UsageError) as caught:
        read_selection(text)
    assert named in str(caught.value)
    assert str(caught.value).startswith("--select: ")
    assert "\n" not in str(caught.value)
