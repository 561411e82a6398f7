"""decide: severity, category, action. Rules first, then the model's choice among the described labels, else unsure."""

from __future__ import annotations

from pydantic import Field, model_validator

from connectors.base import Strict
from schemas.extraction import Severity


class When(Strict):
    """What a rule looks at. All conditions given must hold."""

    source: str | None = Field(default=None, description="name of a source")
    topic: str | None = Field(default=None, description="MQTT topic filter")
    asset: str | None = Field(default=None, description="name, * as wildcard")
    text: str | None = Field(default=None, description="RE2 expression searched in the line")
    code: list[str] | None = Field(default=None, description="codes, exactly as written")
    metric: str | None = Field(default=None, description="metric of a reading, * as wildcard")
    above: float | None = Field(default=None, description="setpoint: the reading (or `field`) is above it")
    below: float | None = Field(default=None, description="setpoint: the reading (or `field`) is below it")
    deadband: float = Field(
        default=0.0, ge=0, description="returns to normal only beyond setpoint by this much"
    )
    field: str | None = Field(default=None, description="field of a line that above/below apply to")

    @model_validator(mode="after")
    def _says_something(self) -> When:
        if not (self.model_fields_set - {"deadband"}):
            raise ValueError("state at least one condition (text, code, metric, topic, ...)")
        if (self.above is not None or self.below is not None) and (self.metric is None) == (
            self.field is None
        ):
            raise ValueError("above and below need either metric (of a reading) or field (of a line)")
        return self


class RuleConfig(Strict):
    """One decision rule. The first rule that matches decides what it states; what it leaves open goes on."""

    id: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        description="name of the rule: the cause of its alarms, and the reason of what it discards",
    )
    when: When = Field(description="what an event must be like; all conditions must hold")
    severity: Severity | None = Field(default=None, description="how bad it is; left out: decided as usual")
    category: str | None = Field(
        default=None, description="one of the categories; left out: decided as usual"
    )
    action: str | None = Field(default=None, description="one of the actions; left out: decided as usual")
    clears: str | None = Field(
        default=None, description="id of the rule, or the code, whose alarm this returns to normal"
    )
    discard: bool = Field(
        default=False, description="the event is routine: counted under this rule's id, nothing else"
    )

    @model_validator(mode="after")
    def _does_something(self) -> RuleConfig:
        if not self.discard and self.clears is None and self.severity is self.category is self.action is None:
            raise ValueError("a rule states severity, category, action, clears or discard")
        return self
