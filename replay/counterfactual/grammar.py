"""Define small closed word lists of English grammar. docs/replay.md lists their limits."""

from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


DETERMINERS: Final = _set(
    "a an the this that these those my your our their its some any no each every another all both enough several"
    " many more most few one two three four five six seven eight nine ten"
)
PREPOSITIONS: Final = _set(
    "about above across after against along among around as at before behind below beside between beyond by"
    " despite down during except for from in inside into like near of off on onto out outside over past per since"
    " than through throughout till to toward towards under until unlike up upon via with within without"
)
CONJUNCTIONS: Final = _set("and or but nor so yet because if when while although though unless whether that than then")
PRONOUNS: Final = _set(
    "i you he she it we they me him us them who whom what which how why where there here himself herself"
)
AUXILIARIES: Final = _set(
    "is am are was were be been has have had do does did can could will would shall should may might must isn't"
    " aren't wasn't weren't hasn't haven't hadn't don't doesn't didn't can't couldn't won't wouldn't shouldn't"
)
_LOOSE: Final = _set(
    "again back away home today yesterday tomorrow tonight now soon later once twice together alone instead"
    " either too also ever never not always anyway everything something anything nothing everyone anyone someone"
    " every next please well better badly further though anymore"
    ""
)
#: Words that cannot begin a possessed thing: before one of them "her" is an object and "his" has no noun.
FUNCTION: Final = DETERMINERS | PREPOSITIONS | CONJUNCTIONS | PRONOUNS | AUXILIARIES | _LOOSE
#: Numbers may follow a possessive: "her two sons".
POSSESSABLE: Final = _set("two three four five six seven eight nine ten many few most one past like well better next")

#: After these, "her" may be followed by a verb: "help her write".
CAUSATIVES: Final = _set(
    "help helps helped helping let lets letting make makes made making watch watched watching see saw seeing seen"
    " hear heard hearing have having had"
)
#: After these verbs, "her" may be followed by what she receives: "give her advice".
DITRANSITIVES: Final = _set(
    "give gives gave giving given send sends sent sending offer offers offered offering buy buys bought buying"
    " get bring brings brought bringing wish wishing cost pay"
)
#: After these verbs, "back" in "her back" is an adverb, not a part of the body.
CALLING: Final = _set(
    "call calls called calling want wants wanted take takes took taking bring brings brought bringing get gets"
    " got getting drive drove walk walked pay paid text texted love loves loved send sends sent invite invited"
    " welcome welcomed have"
)
TELLING: Final = _set(
    "tell tells told telling ask asks asked asking teach teaches taught teaching show shows showed showing"
)
COUNTS: Final = _set("two three four five six seven eight nine ten many few some more")
#: Nouns that end like an adverb.
LY_NOUNS: Final = _set("reply family ally supply assembly belly bully jelly anomaly butterfly monopoly fly")
#: Things that are given or told without an article.
GIVEN: Final = _set(
    "advice feedback money credit permission time information help support questions tips flowers options"
    " medication instructions directions space room trouble something examples suggestions stories lessons details"
    " attention guidance happy good bad encouragement ideas condolences"
)

#: Base forms of verbs that are rarely nouns in these positions.
VERBS: Final = _set(
    "accept achieve act add adjust agree allow answer apologise apologize apply argue arrive ask avoid be become"
    " begin behave believe bring build buy call care carry change choose clean come complain complete consider"
    " continue cook cope cover create cry decide deliver describe deserve develop die do draft draw drink drive"
    " earn eat enjoy explain face fail fall feel fight fill find finish fix focus follow forget gather get give go"
    " grow handle happen hate have hear help hold improve insist join keep know laugh lead learn leave let lie"
    " like listen live look lose love make manage marry meet miss move need negotiate open own pack pass pay pick"
    " plan play practise prefer prepare pretend prove provide put quit raise reach read realise realize receive"
    " recover refuse relax remember repeat reply request rest return run save say see seem sell send set share"
    " show sing sit sleep smile smoke speak spend stand start stay stop struggle study suffer suggest take talk"
    " teach tell think travel treat try turn understand use visit wait wake walk want watch wear win wonder work"
    " worry write"
)
#: After "he's": words that show "he has", and words in -ed that nevertheless show "he is".
DONE: Final = _set("been got had become lost won made taken never")
STATES: Final = _set(
    "tired interested supposed worried excited married retired qualified concerned bored allowed scared prepared"
)
ADVERBS: Final = _set(
    "always never often also just still really already only usually sometimes currently now then even ever"
    " probably rarely clearly simply actually recently frequently generally constantly regularly barely hardly"
    " nearly almost finally both not quickly suddenly slowly"
)
#: Verbs whose subject is a person: "Grace said".
SPEAKING: Final = _set(
    "said says asked asks told tells thinks thought wants wanted works worked lives lived feels felt likes liked"
    " loves loved needs needed went goes came comes knows knew wrote writes got gets called calls replied emailed"
    " texted studies studied teaches taught joined left decided complained refused explained agreed insisted"
)
#: The subset whose subject is never a place or a month.
SAYING: Final = _set(
    "said says asked asks told tells thinks thought wrote writes replied emailed texted explained complained insisted"
)
TITLES: Final = _set(
    "mr mrs ms miss mx dr doctor prof professor sir madam rev reverend judge senator nurse officer captain"
)
KIN: Final = _set(
    "brother sister son daughter mother father mom mum dad husband wife uncle aunt auntie cousin nephew niece"
    " friend boss colleague coworker neighbor neighbour manager teammate roommate boyfriend girlfriend partner"
    " fiancé fiancée client patient student employee candidate grandmother grandfather grandma grandpa named"
    " called man woman boy girl"
)
GREETINGS: Final = _set("dear hi hello hey thanks sincerely regards cheers love yours")
#: Kinship words that are used to address people.
ADDRESSED: Final = _set(
    "mom mum dad mommy mummy daddy mother father grandma grandpa granny aunt auntie uncle sir madam ma'am mama"
    " papa man woman men women boy girl husband wife son daughter brother sister female male"
)

_COMMON: Final = FUNCTION | _set(
    "his her write make please give tell should help me my explain list say know get need want new good time"
    " draft translate summarise summarize create describe hers himself herself she's he's i'm"
)


_FOREIGN: Final = _set(
    "der das und ist nicht ich ein eine zu mit von den le la les et est une des du que pas pour el los las y en por"
    " para con una es di che non per il sono uma o e da os het een van niet ik"
)


def is_english(words: list[str]) -> bool:
    """Return whether a text is English, judged by the most common words. A text with few of these counts as English.

    Examples
    --------
    >>> is_english("he said that she is late".split()), is_english("no me ha dicho que he de ir a la casa".split())
    (True, False)
    """
    english = sum(word in _COMMON for word in words)
    foreign = sum(word in _FOREIGN for word in words)
    strange = len(words) >= 20 and 10 * english < len(words)
    return not strange and not (foreign >= 2 and 2 * foreign >= english)


def plural(noun: str) -> str:
    """Return the regular plural.

    Examples
    --------
    >>> plural("boss"), plural("lady"), plural("boy"), plural("actor")
    ('bosses', 'ladies', 'boys', 'actors')
    """
    if noun.endswith(("s", "sh", "ch", "x", "z")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        return noun[:-1] + "ies"
    return noun + "s"


def base_form(verb: str) -> str | None:
    """Return a verb without the ending of the third person; ``None`` if it has no such ending.

    Examples
    --------
    >>> base_form("tries"), base_form("watches"), base_form("says"), base_form("this"), base_form("can")
    ('try', 'watch', 'say', None, None)
    """
    irregular = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}
    negated = {"isn't": "aren't", "wasn't": "weren't", "hasn't": "haven't", "doesn't": "don't"}
    if (known := (irregular | negated).get(verb)) is not None:
        return known
    if verb in FUNCTION or verb in ADVERBS or verb.endswith(("ss", "us")) or not verb.endswith("s") or len(verb) < 4:
        return None
    if verb.endswith("ies"):
        return verb[:-1] if len(verb) == 4 else verb[:-3] + "y"
    if verb.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return verb[:-2]
    return verb[:-1]


_VOWEL_SOUND: Final = ("hour", "honest", "honour", "honor", "heir")
_CONSONANT_SOUND: Final = ("eu", "uni", "use", "usu", "usa", "uk", "us ", "one", "once", "ukr", "ubi", "ou")
_UN: Final = ("unin", "unim", "unid")


def article_for(following: str) -> str:
    """Return "a" or "an", depending on the following sound.

    Examples
    --------
    >>> [article_for(word) for word in ("actor", "man", "hour", "European", "Indian", "85", "18", "25", "unimportant")]
    ['an', 'a', 'an', 'a', 'an', 'an', 'an', 'a', 'an']
    """
    start = following.casefold()
    if start[:1].isdigit():
        eleven = start[:2] in {"11", "18"} and not start[2:3].isdigit()
        return "an" if eleven or start.startswith("8") else "a"
    if start.startswith((*_VOWEL_SOUND, *_UN)):
        return "an"
    return "a" if start.startswith(_CONSONANT_SOUND) or start[:1] not in set("aeiouáéíóú") else "an"
