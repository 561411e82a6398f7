"""`andon run` on a file that ends: it waits for the model, reads everything, and ends by itself. And where it
cannot run."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from andon import andon, well

SITE = """\
metrics: {port: null}
store: {path: andon.db, free_floor_mb: 0}
sources:
  line7: {type: file, path: in.log, follow: false, mode: live}
"""


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_left_unread_at_the_end_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    (tmp_path / "in.log").write_text("ERROR press7 E207 bearing hot 92 C\nINFO cycle done\n")
    well("run", path)
    counts = well("status", path, "--json").record["counts"]
    assert (counts["lines"], counts["pending"]) == (2, 0)
    taught = [row["taught_by"] for row in well("patterns", "list", path, "--json").records]
    assert len(taught) == 2 and all(by.startswith("model:") for by in taught)


def test_a_metrics_port_that_is_taken_says_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    rest = SITE.replace("metrics: {port: null}\n", "model: {enabled: false}\n")
    (tmp_path / "in.log").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        path.write_text(f"{rest}metrics: {{port: {taken.getsockname()[1]}}}\n")
        ran = andon("run", path)
        assert ran.code == 3 and "cannot be used" in ran.err
        (advice,) = re.findall(r"`(.+?)`", ran.err)
        path.write_text(f"{rest}{advice}\n")
        well("run", path)
