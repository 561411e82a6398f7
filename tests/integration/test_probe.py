"""`andon check --connect`: every source, sink and the model is tried, and what does not answer is named at
its line."""

from __future__ import annotations

from pathlib import Path

from ports import free_port

from pipeline.probe import try_connections

SITE = """\
metrics: {{port: null}}
model: {{enabled: false}}
sources:
  line7: {{type: file, path: here.log}}
  line8: {{type: mqtt, port: {port}, topics: [a]}}
sinks:
  cmms: {{type: http, url: "http://127.0.0.1:{port}/tickets"}}
"""


async def test_what_does_not_answer_is_an_error_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "here.log").write_text("a line\n")
    site = tmp_path / "site.yaml"
    site.write_text(SITE.format(port=free_port()))
    found = {issue.path: (issue.level, issue.line) for issue in await try_connections(site)}
    assert found == {
        "model": ("notice", 2),
        "sources.line7": ("notice", 4),
        "sources.line8": ("error", 5),
        "sinks.cmms": ("error", 7),
    }
