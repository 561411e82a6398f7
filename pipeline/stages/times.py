"""Event times as JSON payloads carry them: ISO 8601 or an epoch in s, ms, µs or ns."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from pipeline.fields import timevalue

# Dead clocks start in 1970, 1980 or 2000.
EARLIEST = timevalue.EARLIEST.replace(tzinfo=UTC)
# A gateway without a clock battery boots into the past; then nothing can be said about the future.
CLOCK_SET = datetime(2024, 1, 1, tzinfo=UTC)

_EPOCH_UNITS = (1, 1_000, 1_000_000, 1_000_000_000)


def plausible(time: datetime, received_at: datetime) -> bool:
    """Whether an event received at `received_at` can have happened at `time` (both aware)."""
    return time >= EARLIEST and (received_at < CLOCK_SET or time <= received_at + timevalue.MAX_AHEAD)


def event_time(written: str, timezone: tzinfo, received_at: datetime) -> datetime | None:
    """Aware UTC time of `written`, None when it cannot be read or cannot be true (CASES 15, 16)."""
    try:
        number = float(written)
    except ValueError:
        return _iso(written, timezone, received_at)
    return _epoch(number, received_at)


def _epoch(number: float, received_at: datetime) -> datetime | None:
    for unit in _EPOCH_UNITS:
        try:
            time = datetime.fromtimestamp(number / unit, UTC)
        except (ValueError, OverflowError, OSError):
            continue
        if plausible(time, received_at):
            return time
    return None


def _iso(written: str, timezone: tzinfo, received_at: datetime) -> datetime | None:
    try:
        time = datetime.fromisoformat(written.strip())
        time = (time if time.tzinfo else time.replace(tzinfo=timezone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if plausible(time, received_at) else None
