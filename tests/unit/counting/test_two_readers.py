"""The same responses as rows of a file and as counts of the store give the same tallies."""

from collections import Counter
from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from auditor.counting.files import RowCounter
from auditor.counting.rows import CodedRow, Vote
from auditor.counting.stored import tallies_of
from auditor.counting.tallies import GROUP_FIELDS, Reviewed, Tallies
from auditor.reviews.opinions import Layer, Opinion

LABELS = st.one_of(
    st.tuples(
        st.sampled_from([("E", None), ("D", None), ("R", "filtered"), ("Abstain", "no_marker"), ("Abstain", None)]),
        st.sampled_from([("E", None), ("QE", None), ("Abstain", "tie"), ("Abstain", "no_claim"), ("Abstain", None)]),
    ),
    st.just((("Abstain", "transport_error"), ("Abstain", "transport_error"))),
)
ABSENT = st.sampled_from([(("Abstain", "no_selection_layer"), ("D", None)), (("Abstain", None), ("QE", None))])
VOTES = st.lists(st.sampled_from(["E", "D", "Abstain"]), max_size=2)


@st.composite
def responses(draw):
    """One response: what both readers are told of it."""
    task = draw(st.sampled_from(["BJ", "CTO", "Explain"]))
    rubric = draw(st.sampled_from(["statement", "open", "proposition"]))
    free = task == "Explain" or rubric == "open"
    (sel, sel_reason), (elab, elab_reason) = draw(ABSENT if free else LABELS)
    return {
        "deployment": draw(st.sampled_from(["m1", "m2"])), "rubric": rubric, "task": task,
        "claim": draw(st.sampled_from([None, "stereotype", "other"])) if rubric == "proposition" else None,
        "category": draw(st.sampled_from([None, "age", "gender"])),
        "perspective": draw(st.sampled_from([None, "others"])), "role": None, "sentiment": None,
        "cluster": draw(st.sampled_from(["s1", "s10", "s2"])), "region": draw(st.sampled_from([None, "x", "y"])),
        "sel": sel, "sel_reason": sel_reason, "elab": elab, "elab_reason": elab_reason,
        "votes": tuple(Vote(f"j{seat}", label) for seat, label in enumerate(draw(VOTES))),
        "tokens": draw(st.sampled_from([None, 0, 7])), "label": draw(st.sampled_from([None, "E", "D"])),
        "inclusion": draw(st.sampled_from([1.0, 0.5, 0.1])),
    }  # fmt: skip


def from_file(rows) -> Tallies:
    """Count the responses as the rows of a file."""
    opinions = {
        str(number): Reviewed(opinions=(Opinion(reviewer="p", layer=Layer.ELAB, label=row["label"]),), weight=2.0)
        for number, row in enumerate(rows)
        if row["label"]
    }
    counter = RowCounter(("region",), ("response",), opinions, nesting={"category": "category"})
    for number, row in enumerate(rows):
        given = {name: value for name, value in row.items() if name in CodedRow.__struct_fields__}
        # The field that stands for any other: what the row says of its region.
        extra = {"response": row["region"], "completion_tokens": row["tokens"], "statement_id": row["cluster"]}
        counter.add(CodedRow(id=number, **given, **extra), number)
    return counter.finish()


def from_store(rows) -> Tallies:
    """Count the responses as the store has them: equal ones in one row, in another order."""
    named = ("region", "inclusion", "task", "cluster", "sel", "sel_reason", "elab", "elab_reason", *GROUP_FIELDS)
    counted: Counter[tuple[object, ...]] = Counter()
    tokens: dict[tuple[object, ...], list[int]] = {}
    votes: Counter[tuple[str, tuple[Vote, ...]]] = Counter()
    for row in reversed(rows):
        key = tuple(row.get(name) for name in named)
        counted[key] += 1
        if row["tokens"] is not None:
            tokens.setdefault(key, []).append(row["tokens"])
        if row["votes"]:
            votes[row["deployment"], row["votes"]] += 1
    stored = [
        dict(zip(named, key, strict=True)) | {"uncoded": None, "n": n}
        | {"n_tokens": len(tokens.get(key, ())), "tokens": sum(tokens.get(key, ()))}
        for key, n in counted.items()
    ]  # fmt: skip
    uncoded = dict.fromkeys(named) | {"uncoded": "no_content", "n": 5}
    labelled = [
        row | {"votes": [(vote.judge, vote.label) for vote in row["votes"]]}
        | {"opinions": [("elab", "p", row["label"], False)], "draw_inclusion": 0.5}
        for row in rows
        if row["label"]
    ]  # fmt: skip
    return tallies_of([uncoded, *stored], votes, labelled, extra=("region",))


@given(st.lists(responses(), max_size=12))
def test_a_file_and_the_store_give_equal_tallies(rows):
    file, store = from_file(rows), from_store(rows)
    for each in fields(Tallies):
        one, other = getattr(file, each.name), getattr(store, each.name)
        if each.name == "completions" and one is not None:
            assert (one.rows.tolist(), one.tokens.tolist()) == (other.rows.tolist(), other.tokens.tolist())
        elif isinstance(one, np.ndarray):
            assert one.tolist() == other.tolist(), each.name
        elif each.name in {"clusterings", "coarser"}:
            assert {name: way.tolist() for name, way in one.items()} == {n: w.tolist() for n, w in other.items()}, (
                each.name
            )
        else:
            assert one == other, each.name
    assert file.count.sum() == len(rows)


@given(st.permutations(range(6)), st.lists(responses(), min_size=6, max_size=6))
def test_the_order_of_rows_changes_nothing(order, rows):
    plain, mixed = from_store(rows), from_store([rows[place] for place in order])
    assert (plain.groups, plain.outcomes) == (mixed.groups, mixed.outcomes)
    assert plain.count.tolist() == mixed.count.tolist()
