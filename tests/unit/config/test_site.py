"""The site once it has loaded: built-ins, code lists, views, hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import builtin, load, loads
from pipeline.fields.definition import FieldConfig
from schemas.errors import ConfigError
from schemas.extraction import FieldType, Severity

CODES = "code,description,severity\nE1,too hot,error\nE2,door open,\n\n"

WITH_CODES = """
sources: {a: {type: mqtt, topics: [x], profile: p, timezone: Asia/Shanghai}}
profiles:
  p: {fields: {c: {type: code, description: the code, known: {csv: lists/codes.csv}}}}
"""


def site_file(folder: Path, text: str, codes: str = CODES) -> Path:
    (folder / "lists").mkdir()
    (folder / "lists" / "codes.csv").write_text(codes, encoding="utf-8")
    path = folder / "site.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_builtin_has_what_eval_and_a_first_try_need() -> None:
    site = builtin()
    fields = site.profiles["machine-log"].fields
    names = "timestamp device error_code temperature pressure vibration current voltage speed".split()
    assert list(fields) == names
    assert fields["temperature"].unit == "°C" and fields["device"].type is FieldType.ASSET
    assert list(site.severities) == list(Severity)
    assert len(site.categories) == 8 and site.actions
    assert [(route.sink, route.ticket_from) for route in site.routes] == [("board", Severity.ERROR)]
    assert site.sources == {} and site.text == "" and site.file is None


def test_profiles_are_added_and_replaced_by_name() -> None:
    mine = "{fields: {f: {type: text, description: x}}}"
    assert set(loads(f"profiles: {{mine: {mine}}}").profiles) == {"machine-log", "mine"}
    assert set(loads(f"profiles: {{machine-log: {mine}}}").profiles["machine-log"].fields) == {"f"}


def test_labels_given_replace_the_list_but_severities_are_always_four() -> None:
    site = loads("categories: {jam: stuck}\nactions: {go: go there}\nseverities: {error: it stands still}")
    assert site.labels.categories == {"jam": "stuck"} and site.labels.actions == {"go": "go there"}
    assert list(site.labels.severities) == list(Severity)
    assert site.labels.severities[Severity.ERROR] == "it stands still"


def test_the_first_sink_gets_everything_when_no_route_is_given() -> None:
    site = loads("sinks: {desk: {type: http, url: 'https://x/y'}}")
    assert [route.sink for route in site.routes] == ["desk"] and list(site.sinks) == ["desk", "board"]
    assert loads("routes: []").routes == []


def test_code_lists_are_read_from_beside_the_site_file(tmp_path: Path) -> None:
    site = load(site_file(tmp_path, WITH_CODES))
    assert site.known("p", "c") == {"E1", "E2"}
    assert site.profiles["p"].fields["c"].known == ["E1", "E2"]
    first, second = site.codes("p", "c")["E1"], site.codes("p", "c")["E2"]
    assert (first.description, first.severity) == ("too hot", Severity.ERROR)
    assert (second.description, second.severity) == ("door open", None)
    assert site.known("machine-log", "error_code") == frozenset()
    assert site.codes("machine-log", "error_code") == {}


def test_a_source_sees_its_own_profile_zone_and_labels(tmp_path: Path) -> None:
    view = load(site_file(tmp_path, WITH_CODES)).for_source("a")
    assert view.timezone.key == "Asia/Shanghai" and view.profile_name == "p" and not view.live
    assert view.codes["c"]["E1"].description == "too hot"
    assert "other" in view.labels.categories


def test_hash_changes_with_the_text_and_with_the_lists(tmp_path: Path) -> None:
    path = site_file(tmp_path, WITH_CODES)
    first = load(path).hash
    assert first == load(path).hash and len(first) == 16
    path.write_text(WITH_CODES + "# a remark\n", encoding="utf-8")
    second = load(path).hash
    (tmp_path / "lists" / "codes.csv").write_text(CODES.replace("too hot", "hot"), encoding="utf-8")
    assert len({first, second, load(path).hash, builtin().hash}) == 4


def test_paths_start_at_the_site_file(tmp_path: Path) -> None:
    site = load(site_file(tmp_path, "store: {path: data/a.db}"))
    assert site.store_path == tmp_path / "data" / "a.db"
    assert site.socket_path == tmp_path / "data" / "a.sock"
    assert site.path("/etc/x") == Path("/etc/x")


def test_yes_no_dates_and_times_stay_text() -> None:
    site = loads("sources: {on: {type: mqtt, topics: [off, 2024-01-01, 12:30], client_id: no}}")
    config = site.sources["on"]
    assert config.model_dump()["topics"] == ["off", "2024-01-01", "12:30"]
    assert config.model_dump()["client_id"] == "no"


def test_anchors_and_merge_keys_share_what_is_common() -> None:
    text = """
sources:
  a: &hall {type: mqtt, host: broker, topics: [x], mode: live, username: u, password: {file: p}}
  b: {<<: *hall, topics: [y], client_id: b}
"""
    site = loads(text)
    shared = site.sources["b"].model_dump()
    assert (shared["host"], shared["mode"], shared["topics"]) == ("broker", "live", ["y"])


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_bytes("\ufeffsite: Halle 2\r\ntimezone: Europe/Berlin\r\n".encode())
    assert load(path).site == "Halle 2"


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    for name, content, expected in [
        ("none.yaml", None, ":1:1: (file): cannot be read: No such file or directory"),
        (
            "ansi.yaml",
            b"site: x\n# \xdcber\n",
            ":2:3: (file): not UTF-8 text (byte 0xDC); save the file as UTF-8",
        ),
    ]:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert str(caught.value) == f"{path}{expected}"
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_the_list_in_force_stands_in_the_field_itself(tmp_path: Path) -> None:
    """Whoever normalises a code looks at the field's own `known`, and never at a file."""
    field = load(site_file(tmp_path, WITH_CODES)).profiles["p"].fields["c"]
    assert isinstance(field, FieldConfig) and field.known_values == {"E1", "E2"}
