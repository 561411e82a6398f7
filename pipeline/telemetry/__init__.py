"""What andon tells about itself: logs as JSON on stderr, Prometheus metrics and health on loopback."""

from __future__ import annotations

from pipeline.telemetry.logs import Level, configure_logging
from pipeline.telemetry.metrics import Metrics
from pipeline.telemetry.server import Health, TelemetryServer

__all__ = ["Health", "Level", "Metrics", "TelemetryServer", "configure_logging"]
