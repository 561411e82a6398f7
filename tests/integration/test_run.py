"""`andon run` on a file that ends: it waits for the model, reads everything, and ends by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from andon import well

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
