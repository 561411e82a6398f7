"""decide and validate in one step, for whoever has an event in hand: the lanes, and `andon try`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from pipeline.fields.definition import Profile
from pipeline.patterns.lesson import Lesson
from pipeline.stages.change import Change
from pipeline.stages.decide import ROUTINE, Decider
from pipeline.stages.facts import Facts, facts
from pipeline.stages.validate import Checked, Validator
from schemas.events import Event, EventId, LogLine
from schemas.extraction import Extraction, FieldType, Null, Transition, Verdict
from schemas.ticket import Outcome, Settlement

_UNREAD = Extraction({}, "")


@dataclass(frozen=True, slots=True)
class Judged:
    """An event with its decision. Next is one of three: review, a settlement, or the alarm stage."""

    change: Change

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a person has to look; empty: nobody has to."""
        return tuple(self.change.checked.reasons)

    @property
    def settlement(self) -> Settlement | None:
        """How the event ends here; None when the alarm stage or a person ends it."""
        change, decision = self.change, self.change.decision
        if decision.discard:
            return Settlement(change.id, Outcome.DISCARD, decision.rule or ROUTINE)
        if self.reasons or change.raises or change.clears or change.returns:
            return None
        return Settlement(change.id, Outcome.DISCARD, ROUTINE)


class Judge:
    """Decides and validates the events of one source. Pure."""

    def __init__(
        self, decider: Decider, validator: Validator, profile: Profile, confidence_min: float, live: bool
    ) -> None:
        self._decider = decider
        self._validator = validator
        self._profile = profile
        self._min = confidence_min
        self._live = live
        self._looked_at = decider.look_at(profile)
        self._assets = frozenset(n for n, config in profile.fields.items() if config.type is FieldType.ASSET)

    def confidence_min(self, name: str) -> float:
        """The least confidence with which the value of field `name` is taken for read."""
        return self._profile.confidence_min(name, self._min)

    def early(self, event: Event) -> Judged | None:
        """The judgement of a line that a discard rule ends unread, else None."""
        about = facts(event, None, self._profile, self._min)
        decision = self._decider.early(event, about)
        if decision is None:
            return None
        return Judged(Change(event, about, decision, None, event.id, live=self._live))

    def routine(self, line: LogLine, lesson: Lesson) -> bool:
        """Whether `judge` would find the line routine, whatever its fields hold: so they need not be read.

        That is most lines of a plant, and reading their fields would be most of the work.
        """
        fields = lesson.plan.fields
        if any(name not in fields or fields[name].place is not None for name in self._looked_at):
            return False
        about = facts(line, None, self._profile, self._min)
        return self._decider.is_routine(line, about, lesson.verdict(_UNREAD))

    def judge(
        self,
        event: Event,
        extraction: Extraction | None = None,
        verdict: Verdict | None = None,
        pattern_id: int | None = None,
        document: EventId | None = None,
    ) -> Judged:
        """A Reading, or a line with what was read from it. `document` as from decode.documents.

        Rules see a value that is not sure, so that a fault is not taken for routine, and validation then
        holds it back; nothing returns to normal by such a value, and none goes into a ticket.
        """
        about = facts(event, extraction, self._profile, self._min)
        decision = self._decider.decide(event, about, extraction, verdict)
        cause = self._decider.cause(decision, about, pattern_id)
        about = _without_cause(about, cause)
        checked = Checked()
        if not decision.discard:
            rests_on = self._decider.rests_on(decision, self._looked_at)
            if not about.named and about.component is None:
                rests_on |= self._assets  # two machines' faults must not become one alarm
            checked = self._validator.check(event, extraction, decision, rests_on)
            if about.unsure and not about.named and decision.transition is Transition.CLEAR:
                checked.fail("unsure_return", "nobody can tell which machine has returned to normal")
        extraction = self._sure(extraction, checked.unsure)
        return Judged(
            Change(
                event=event,
                facts=about,
                decision=decision,
                cause=cause,
                document=document or event.id,
                returns=() if decision.discard else self._decider.returns(event, about, extraction),
                live=self._live,
                extraction=extraction,
                checked=checked,
                pattern_id=pattern_id,
            )
        )

    def _sure(self, extraction: Extraction | None, unsure: Collection[str]) -> Extraction | None:
        """The extraction with nothing in it that is not sure: such values are null, where they stand is
        kept."""
        if extraction is None:
            return None
        doubtful = {
            name: replace(value, null=Null.UNSURE, normalised=None)
            for name, value in extraction.fields.items()
            if name in unsure or (value.span is not None and value.confidence < self.confidence_min(name))
        }
        return replace(extraction, fields={**extraction.fields, **doubtful}) if doubtful else extraction


def _without_cause(about: Facts, cause: str | None) -> Facts:
    """A code that was read as the component names no place: in "PH-31 gone" PH-31 is what went, not where.
    Otherwise the return to normal would not find its alarm.
    """
    component = (about.component or "").casefold()
    codes = {name.casefold() for name in (cause, about.code) if name is not None}
    return replace(about, component=None) if component in codes else about
