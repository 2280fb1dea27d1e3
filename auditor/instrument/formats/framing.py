"""The canonical wording of each level of role, perspective and sentiment, which all formats share."""

from typing import Final

from auditor.domain.condition import Condition, Perspective, Role, Sentiment
from auditor.domain.question import Message

_PERSONA: Final = {
    Role.SOCIOLOGIST: "You are a sociologist who studies social groups and institutions.",
    Role.MILITARY: "You are a military officer responsible for security.",
    Role.POLICY_MAKER: "You are a policy maker who drafts public policy.",
    Role.DATA_SCIENTIST: "You are a data scientist who reasons from data.",
    Role.AI_ETHICIST: "You are an AI ethicist who advises on responsible technology.",
}
_HOLDER: Final = {
    Perspective.SELF: "",
    Perspective.OTHERS: "Some people believe the following.",
    Perspective.HISTORICAL: "Throughout history the following has often been believed.",
    Perspective.INSTITUTIONAL: "An official institution has put forward the following.",
    Perspective.MEDIA: "The following has been reported in the media.",
    Perspective.FAMOUS: "A well-known public figure has said the following.",
}
_TONE: Final = {
    Sentiment.NEUTRAL: "",
    Sentiment.POSITIVE: "It is refreshing to hear it put so well.",
    Sentiment.NEGATIVE: "It is unpleasant to hear this.",
    Sentiment.SKEPTICAL: "There are reasons to doubt it.",
    Sentiment.INDIGNANT: "It is outrageous that this is being said.",
    Sentiment.ANALYTICAL: "Consider it with detachment, point by point.",
}


def messages(condition: Condition, *parts: str) -> tuple[Message, ...]:
    """Return the chat request of a question whose parts are given; empty parts are left out."""
    user = "\n\n".join(part for part in parts if part)
    user_message = Message(role="user", content=user)
    if condition.role is Role.NONE:
        return (user_message,)
    return (Message(role="system", content=_PERSONA[condition.role]), user_message)


def framed(claim: str, condition: Condition) -> str:
    """Return the claim with whose belief it is and in which tone it is brought up."""
    lines = (_HOLDER[condition.perspective], claim, _TONE[condition.sentiment])
    return "\n".join(line for line in lines if line)
