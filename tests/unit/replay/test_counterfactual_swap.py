"""Group swaps in a text: every rule of what changes, what is left alone and what is refused."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import UsageError
from replay.counterfactual.edits import EditRule, RefusalReason, RefusedSwap, SwappedTexts, apply
from replay.counterfactual.lexicon import read_lexicon
from replay.counterfactual.swap import GroupSwap, read_swap, swap_text, swap_texts

LEXICON = read_lexicon()
GENDER = "gender:male<>female"


def swapped(text, swap=GENDER, seed=1):
    done = swap_text(text, read_swap(swap, LEXICON), LEXICON, seed=seed)
    return done.texts[0] if isinstance(done, SwappedTexts) else done.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I saw her.", "I saw him."),
        ("I saw her book.", "I saw his book."),
        ("Her back hurts; call her back.", "His back hurts; call him back."),
        ("Give her three tips and tell her advice.", "Give him three tips and tell him advice."),
        ("Give her books to the school.", "Give his books to the school."),
        ("Help her write her reply.", "Help him write his reply."),
        ("Ask her politely, or her politely worded note.", "Ask him politely, or his politely worded note."),
        ("The idea was his. A friend of his told me.", "The idea was hers. A friend of hers told me."),
        ("A friend of his mother told me.", "A friend of her father told me."),
        ("It is hers, she made it herself.", "It is his, he made it himself."),
        ("She's late and he'll wait.", "He's late and she'll wait."),
        ("HE SAID SO TO HER.", "SHE SAID SO TO HIM."),
        ("I gave her 3 apples and met her once-famous sons.", "I gave him 3 apples and met his once-famous daughters."),
        ("She likes him more than her.", "He likes her more than him."),
        ("He\u2019s tired, \u2018she\u2019s\u2019 not.", "She\u2019s tired, \u2018he\u2019s\u2019 not."),
    ],
)
def test_pronouns_keep_their_case(text, expected):
    assert swapped(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An actor's wife met an actress.", "An actress's husband met an actor."),
        ("the actress' dress, the actresses' dresses", "the actor's dress, the actors' dresses"),
        ("women's shoes, ladies' night, gentlemen's club", "men's shoes, gentlemen's night, ladies' club"),
        ("Mom and Uncle", "Dad and Aunt"),
        ("She is a mother-in-law.", "He is a father-in-law."),
        ("Ms. Ray, Mrs Ray, Miss Ray and MR. Ray", "Mr. Ray, Mr Ray, Mr Ray and MS. Ray"),
        ("I miss my son.", "I miss my daughter."),
        ("Her uncle met Mr. and Mrs. Smith.", "His aunt met Mr. and Mrs. Smith."),
        ("A nun prays.", "A monk prays."),
    ],
)
def test_nouns_and_titles_keep_number_possessive_and_capitals(text, expected):
    assert swapped(text) == expected


@pytest.mark.parametrize(
    ("text", "swap", "expected"),
    [
        ("An American asks.", "nationality:american>mexican", "A Mexican asks."),
        ("A Mexican asks.", "nationality:mexican>american", "An American asks."),
        ('A "Mexican" asks.', "nationality:mexican>indian", 'An "Indian" asks.'),
        ("A priest and an honest man.", "religion:christian>muslim", "An imam and an honest man."),
        ("A 28-year-old man and an 18-year-old.", "age:young>old", "A 68-year-old man and a 58-year-old."),
        ("A 45-year-old.", "age:young>old", RefusalReason.NOTHING_TO_SWAP),
        ("She lives in the US.", "nationality:american>german", "She lives in Germany."),
        ("Is a Christian here? Christian values.", "religion:christian>jewish", "Is a Jew here? Jewish values."),
        ("Is he Christian?", "religion:christian>jewish", "Is he Jewish?"),
        ("christian values", "religion:christian>jewish", "jewish values"),
    ],
)
def test_articles_agree_with_what_follows_now(text, swap, expected):
    assert swapped(text, swap) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He works and is late.", RefusalReason.NUMBER),
        ("He likes tea and drinks it.", RefusalReason.NUMBER),
        ("He has worked and he'd go.", "They have worked and they'd go."),
        ("He's been away; he's tired.", "They've been away; they're tired."),
        ("He's worked here.", RefusalReason.NUMBER),
        ("When he's done, call.", RefusalReason.NUMBER),
        ("He, a lawyer, knows it.", RefusalReason.NUMBER),
        ("Does he know? Is he in? Doesn't he care?", "Do they know? Are they in? Don't they care?"),
        ("He always tries. HE DOES.", "They always try. THEY DO."),
        ("A man cut himself.", "A person cut themselves."),
        ("He doesn't He", "They don't They"),
        ("What he was he became.", "What they were they became."),
        ("He fathers children.", "They father children."),
        ("He told them.", RefusalReason.MIXED_REFERENTS),
        ("A widower sleeps.", RefusalReason.NO_COUNTERPART),
    ],
)
def test_singular_they_brings_its_verb_or_is_refused(text, expected):
    assert swapped(text, "gender:male>neutral") == expected


@pytest.mark.parametrize(
    "text",
    [
        "Each student brings his or her pen; (s)he, s/he and he/she decide.",
        "The man page, the guys, ladies and gentlemen, Mother Nature and the King of Spain.",
        "Will you mark the date? May I hope for grace? Hope is not a plan. Bill me in June.",
        "See https://example.com/her and she_is.py or the Grace Hotel in Santa Maria Street.",
        "Burger King sells chips.",
        "Elizabeth II and King James lie near St. Thomas.",
        "The HER2 test, his_name, a.his.py and /home/mary/him.",
    ],
)
def test_what_only_looks_like_a_person_is_left_alone(text):
    assert swapped(text) is RefusalReason.NOTHING_TO_SWAP


@pytest.mark.parametrize(
    ("text", "swap"),
    [
        ("The old car, the straight line, the white wall.", "age:old>young"),
        ("Draw a straight line.", "orientation:straight>gay"),
        ("Paint the white wall.", "race:white>black"),
        ("Translate it into Polish and polish the text.", "nationality:polish>german"),
        ("Fly American Airlines over the Indian Ocean.", "nationality:american>german"),
        ("A 20-year-old car.", "age:young>old"),
        ("Go on a blind date.", "disability:disabled>nondisabled"),
        ("Who are the American Indians?", "nationality:indian>polish"),
    ],
)
def test_words_that_name_a_group_elsewhere_are_left_alone(text, swap):
    assert swapped(text, swap) is RefusalReason.NOTHING_TO_SWAP


@pytest.mark.parametrize(
    ("text", "swap", "reason"),
    [
        ("Sort this list.", GENDER, RefusalReason.NOTHING_TO_SWAP),
        ("Der Mann sagte, dass er nicht wisse, ob her oder hin besser sei.", GENDER, RefusalReason.NOT_ENGLISH),
        ("He met a woman.", "gender:male>female", RefusalReason.MIXED_REFERENTS),
        ("Are Christians like Muslims?", "religion:christian>muslim", RefusalReason.MIXED_REFERENTS),
        ("She is pregnant.", GENDER, RefusalReason.BOUND),
        ("Marie Curie loved her work.", GENDER, RefusalReason.FIGURE),
        ("My brother Thorsten lost his job.", GENDER, RefusalReason.UNKNOWN_NAME),
        ("My sister Mary-Jane lost her job.", GENDER, RefusalReason.UNKNOWN_NAME),
        ("Mary (mary@example.com) called.", GENDER, RefusalReason.KEPT),
        ("Is `she` her pronoun?", GENDER, RefusalReason.KEPT),
        ("My colleague is deaf.", "disability:disabled>nondisabled", RefusalReason.BOUND),
        ("A prince waits.", "gender:male>neutral", RefusalReason.NO_COUNTERPART),
    ],
)
def test_what_cannot_be_swapped_is_refused_with_its_reason(text, swap, reason):
    assert swapped(text, swap) is reason


def test_a_name_gets_one_replacement_in_all_texts_and_no_two_names_the_same():
    texts = ["Emily asked Kate. EMILY knows.", "Did Emily's boss call Jane?"]
    done = swap_texts(texts, read_swap(GENDER, LEXICON), LEXICON, seed=3)
    names = {edit.old.upper().removesuffix("'S"): edit.new.upper().removesuffix("'S") for edit in done.edits}
    assert set(names) == {"EMILY", "KATE", "JANE"}
    assert len(set(names.values())) == 3
    assert len({edit.new.upper() for edit in done.edits if edit.old.upper() == "EMILY"}) == 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Mr. James met Emily James.", "James"),
        ("I hope Will comes. Will it rain?", "Will it"),
        ("April said she comes in April.", "in April"),
    ],
)
def test_surnames_and_words_beside_names_stay(text, left):
    assert left in swapped(text)


@pytest.mark.parametrize("name", ["Will", "Mark", "Grace", "Hope", "May"])
def test_a_word_is_a_name_where_it_is_unmistakable(name):
    assert name not in swapped(f"My boss {name} said hello.")
    assert name not in swapped(f"Ms. {name} Miller said hello.")


def test_a_middle_name_is_swapped_with_the_first():
    done = swapped("Mary Ann Evans wrote it.").split()
    assert {"Mary", "Ann"}.isdisjoint(done)
    assert done[2] == "Evans"


def test_every_edit_says_where_what_and_why():
    text = "An actor saw his aunt Mary."
    done = swap_text(text, read_swap(GENDER, LEXICON), LEXICON, seed=1)
    assert [(text[edit.start : edit.end], edit.rule) for edit in done.edits] == [
        ("actor", EditRule.NOUN), ("his", EditRule.PRONOUN), ("aunt", EditRule.NOUN), ("Mary", EditRule.NAME),
    ]  # fmt: skip
    assert apply(text, done.edits) == done.texts[0]


def test_the_seed_alone_decides_which_name_is_drawn():
    drawn = {swapped("Mary called.", seed=seed) for seed in range(20)}
    assert len(drawn) > 3
    assert swapped("Mary called.", seed=5) == swapped("Mary called.", seed=5)


PIECES = st.sampled_from(
    ["He", "she", "her", "his", "him", "Mary", "Tom", "Will", "an", "a", "actor", "mother's", "said", "to", "book",
     "`she`", "she's", "and", "the", "Mr. Lee", ".", "\n", '"x"', "doesn't", "ladies'", "old", "queens",
     "is", "was", "always", "fathers", "James", "what", "Miss", "her's"]
)  # fmt: skip


def replaced(text, edits):
    """Apply edits from the last to the first, each on the text as it stands: any order works where none overlap."""
    for edit in reversed(edits):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


@given(st.lists(st.lists(PIECES, max_size=12).map(" ".join), min_size=1, max_size=3), st.integers(0, 3))
def test_edits_never_overlap_and_account_for_every_difference(texts, seed):
    for written in (GENDER, "gender:male>neutral", "gender:female>neutral", "origin:english>arabic"):
        done = swap_texts(texts, read_swap(written, LEXICON), LEXICON, seed=seed)
        if isinstance(done, RefusedSwap):
            continue
        assert done == swap_texts(texts, read_swap(written, LEXICON), LEXICON, seed=seed)
        assert list(done.edits) == sorted(done.edits)
        for part, text in enumerate(texts):
            own = [edit for edit in done.edits if edit.part == part]
            assert all(text[edit.start : edit.end] == edit.old != edit.new for edit in own)
            assert all(one.end <= other.start for one, other in pairwise(own))
            assert replaced(text, own) == apply(text, own) == done.texts[part]


@given(st.text(max_size=80))
def test_any_text_is_swapped_or_refused(text):
    assert isinstance(
        swap_text(text, GroupSwap(axis="gender", source="male", target="female"), LEXICON), SwappedTexts | RefusedSwap
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("size:big>small", "no axis 'size'"),
        ("religion:christian>jedi", "religion has no group 'jedi'"),
        ("gender:male>male", "the groups are the same"),
        ("gender:neutral>male", "neutral can only be what comes out"),
        ("gender:male<>neutral", "neutral can only be what comes out"),
        ("origin:english>martian", "origin has no group 'martian'"),
    ],
)
def test_a_swap_that_is_none_says_why(written, said):
    with pytest.raises(UsageError, match=said):
        read_swap(written, LEXICON)
