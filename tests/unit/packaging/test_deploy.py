"""What is deployed beside the program: alert rules and the runbook, and the metrics that both speak of."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pipeline.telemetry import Metrics


@pytest.fixture(scope="module")
def rules(repository: Path) -> Path:
    return repository / "deploy" / "prometheus-rules.yml"


@pytest.fixture(scope="module")
def alerts(rules: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(rules.read_text())["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def runbook(repository: Path) -> str:
    return (repository / "deploy" / "runbook.md").read_text()


@pytest.fixture(scope="module")
def metric_names() -> set[str]:
    """Every series the service can show."""
    metrics = Metrics()
    metrics.declare_source("line7")
    families = list(text_string_to_metric_families(metrics.exposition().decode()))
    names = {sample.name for family in families for sample in family.samples}
    # Families whose labels have no value yet show no sample; a counter's sample has the suffix.
    for family in families:
        names |= {family.name, f"{family.name}_total"} if family.type == "counter" else {family.name}
        if family.type == "histogram":
            names |= {f"{family.name}_{suffix}" for suffix in ("bucket", "sum", "count")}
    return names


def test_promtool_takes_the_rules(rules: Path, require: Callable[[str], str]) -> None:
    done = subprocess.run(
        [require("promtool"), "check", "rules", "--lint=all", "--lint-fatal", str(rules)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_on_its_story_and_only_then(
    rules: Path, alerts: list[dict[str, Any]], require: Callable[[str], str], tmp_path: Path
) -> None:
    stories = Path(__file__).with_name("prometheus-rules.test.yml").read_text()
    stories = stories.replace(
        "NEVER_MEASURED", "NaN " * 120
    )  # promtool repeats numbers, and NaN is none to it
    stories = stories.replace("RULES", str(rules)).replace("value: ALERTS", f"value: {len(alerts)}")
    path = tmp_path / "stories.yml"
    path.write_text(stories)
    done = subprocess.run(
        [require("promtool"), "test", "rules", str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_ask_for_metrics_that_exist(alerts: list[dict[str, Any]], metric_names: set[str]) -> None:
    asked = {name for rule in alerts for name in re.findall(r"\b(?:andon|process)_\w+", rule["expr"])}
    assert asked <= metric_names, asked - metric_names


def test_every_alert_is_explained(alerts: list[dict[str, Any]], runbook: str) -> None:
    headings = set(re.findall(r"^### (\w+)$", runbook, flags=re.MULTILINE))
    assert headings == {rule["alert"] for rule in alerts}


def test_every_metric_is_explained_and_no_other(metric_names: set[str], runbook: str) -> None:
    explained = set(re.findall(r"`(andon_\w+)", runbook))
    shown = {
        re.sub(r"_(bucket|sum|count|total)$", "", name) for name in metric_names if name.startswith("andon_")
    }
    assert {re.sub(r"_total$", "", name) for name in explained} == shown
