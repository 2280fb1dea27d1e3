"""Trials of routes: the arm of each request of a client, its instruction, and the tags that record both."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from auditor.config import Config, Route
from auditor.trials.assignment import (
    ARM_TAG,
    CONTROL,
    STOPPED,
    TRIAL_TAG,
    UNASSIGNED,
    UNTOUCHED_TAG,
    ArmKind,
    assign,
    stop_key,
)
from gateway.routing.instructions import CannotInstruct, instruct, json_text

_NULL: Final = msgspec.Raw(b"null")


class TrialPart(NamedTuple):
    """The part of one request in a trial."""

    tags: Mapping[str, str]
    body: bytes | None  #: what deployments get in place of the client's body; None: the client's


class _Asking(msgspec.Struct):
    """The members of a request that say who asks; one of another type than text is ignored."""

    safety_identifier: msgspec.Raw = _NULL
    user: msgspec.Raw = _NULL


_asking: Final = msgspec.json.Decoder(_Asking)
_text: Final = msgspec.json.Decoder(str)


class Trial:
    """The trial of one route."""

    def __init__(self, config: Config, route: Route, trial: str, stopped: Collection[str]) -> None:
        assert route.mitigation is not None
        self._id = trial
        self._seed = config.seed
        self._route = route.model
        self._unit_tag = config.unit_tag(route)
        self._share = route.mitigation.share
        self._arms: dict[str, tuple[ArmKind, bytes]] = {
            arm.name: (arm.kind, json_text(arm.text)) for arm in route.mitigation.arms
        }
        self._names = tuple(self._arms)
        self._stopped = frozenset(name for name in self._names if stop_key(trial, name) in stopped)

    def take_part(self, endpoint: str, body: bytes, tags: Mapping[str, str]) -> TrialPart:
        """Return the arm of a request, and its body with the instruction of the arm.

        Parameters
        ----------
        endpoint
            Path of the endpoint.
        body
            Body as the client has sent it; it has passed `gateway.wire.read_envelope`.
        tags
            Tags of the request.
        """
        unit = _user(body) if self._unit_tag is None else tags.get(self._unit_tag)
        arm = assign(self._seed, self._route, unit, self._share, self._names) if unit else UNASSIGNED
        trial_tags = {TRIAL_TAG: self._id, ARM_TAG: arm}
        if arm in {CONTROL, UNASSIGNED}:
            return TrialPart(trial_tags, None)
        if arm in self._stopped:
            return TrialPart({**trial_tags, UNTOUCHED_TAG: STOPPED}, None)
        kind, text = self._arms[arm]
        try:
            return TrialPart(trial_tags, instruct(endpoint, kind, text, body))
        except CannotInstruct as refused:
            return TrialPart({**trial_tags, UNTOUCHED_TAG: refused.reason}, None)


def _user(body: bytes) -> str | None:
    """Return who asks, as audit profiles cluster without a rule of their own; None if the request does not say."""
    asking = _asking.decode(body)
    for raw in (asking.safety_identifier, asking.user):
        try:
            user = _text.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if user.strip():
            return user
    return None
