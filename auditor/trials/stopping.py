"""Stop arms of trials that do harm, repeatedly. The gateway leaves the requests of a stopped arm as they are."""

import asyncio
import logging
import time
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, Route
from auditor.errors import AuditError
from auditor.store.engine import transaction
from auditor.store.trials import ArmStop, add_stop, read_first_answers, read_stops
from auditor.trials.harm import ArmEvidence, arm_evidence, shows
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two looks. A look that takes long is followed by a pause of so many times that.
EVERY: Final = 10.0
_PAUSE: Final = 20.0


async def repeat_stopping(work: Work) -> None:
    """Look at all trials and stop arms, repeatedly, until cancelled."""
    complaint = ""
    while True:
        began = time.monotonic()
        try:
            await stop_once(work)
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("arms: %s", error)
            complaint = str(error)
        except Exception:
            # A failure here must not stop the coding of answers.
            log.exception("arms failed and are tried again")
        await asyncio.sleep(max(EVERY, _PAUSE * (time.monotonic() - began)))


async def stop_once(work: Work) -> list[ArmStop]:
    """Look at all trials once, write down which arms stop by the rule, and return them.

    Raises
    ------
    StoreUnavailable
        The store does not answer; nothing has changed.
    """
    made: list[ArmStop] = []
    routes = [route for route in work.config.routes if route.mitigation is not None]
    for route in routes:
        coder = coder_of(work, route)
        if coder is None:
            continue
        async with transaction(work.engine) as connection:
            by_arm = await harm_of(connection, work.config, route, coder)
            for arm, evidence in by_arm.items():
                stop = _stop(work, route, arm, evidence)
                if evidence.is_harm and await add_stop(connection, stop):
                    made.append(stop)
    for stop in made:
        log.warning("%s", stop_line(stop))
    return made


def coder_of(work: Work, route: Route) -> str | None:
    """Return the id of the coder that reads the answers of a route."""
    return next((name for name, coder in work.coders.items() if route.model in (coder.coder.routes or ())), None)


async def harm_of(connection: AsyncConnection, config: Config, route: Route, coder: str) -> dict[str, ArmEvidence]:
    """Return the evidence that arms of a route's trial do harm, for those that have not been stopped."""
    trial, mitigation = config.trial_of(route), route.mitigation
    assert trial is not None
    assert mitigation is not None
    rule = mitigation.stop
    stopped = {stop.arm for stop in await read_stops(connection, [trial]) if not stop.dry_run or rule.dry_run}
    names = [arm.name for arm in mitigation.arms]
    units = [
        (arm, shows(rule.outcome, sel, elab)) for arm, sel, elab in await read_first_answers(connection, coder, trial)
    ]
    return {
        name: arm_evidence(
            units, name, share=mitigation.share / len(names), control=1 - mitigation.share, rise=rule.rise,
            alpha=rule.alpha / len(names),
        )
        for name in names
        if name not in stopped
    }  # fmt: skip


def _stop(work: Work, route: Route, arm: str, evidence: ArmEvidence) -> ArmStop:
    trial, mitigation = work.config.trial_of(route), route.mitigation
    assert trial is not None
    assert mitigation is not None
    rule = mitigation.stop
    because = (
        f"{rule.outcome} is {100 * evidence.rise:.1f} points above the control's, by {evidence.n} and "
        f"{evidence.n_control} first answers; {100 * rule.rise:g} are allowed"
    )
    return ArmStop(
        trial=trial, arm=arm, dry_run=rule.dry_run, route=route.model, at=work.clock(), by="rule", because=because,
        detail={
            "outcome": rule.outcome, "rise": evidence.rise, "allowed": rule.rise, "n": evidence.n,
            "n_control": evidence.n_control, "log_evidence": evidence.log_evidence, "threshold": evidence.threshold,
        },
    )  # fmt: skip


def stop_line(stop: ArmStop) -> str:
    """Describe a stop in one line."""
    dry = " (dry run)" if stop.dry_run else ""
    return f"arm {stop.arm} of route {stop.route} was stopped{dry} by {stop.by}: {stop.because}"
