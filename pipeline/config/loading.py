"""From a site file to a Site, or to every error in it."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pipeline.config.checks import cross_findings, read_lists
from pipeline.config.compose import compose
from pipeline.config.document import Document, Finding, Position
from pipeline.config.draft import Draft
from pipeline.config.faults import findings, outside
from pipeline.config.site import Site
from pipeline.config.syntax import refused
from schemas.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Loaded:
    """A site with the document it was read from, for whoever wants to point at its lines."""

    site: Site
    document: Document


def load(path: Path) -> Site:
    """The site file at `path`. Raises ConfigError with every issue found, in file order."""
    return load_document(path).site


def loads(text: str, file: str = "site.yaml") -> Site:
    """The site file's `text`; `file` names it in errors, and relative paths start at its folder.

    Raises ConfigError with every issue found, in file order.
    """
    return _examined(text, Path(file)).site


def builtin() -> Site:
    """The site without a site file: the built-in profile, labels and board, and no source."""
    return Site.model_validate_json("{}", strict=True)


def load_document(path: Path) -> Loaded:
    """As `load`, with the document."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise refused(str(path), Position(), f"cannot be read: {error.strerror}") from None
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        position = Position(before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        message = f"not UTF-8 text (byte 0x{data[error.start]:02X}); save the file as UTF-8"
        raise refused(str(path), position, message) from None
    return _examined(text, path)


def _examined(text: str, file: Path) -> Loaded:
    document = compose(text, str(file))
    site, found = _validated(document)
    draft = Draft.of(document.data, file.parent)
    lists, problems = read_lists(draft)
    found = _merged(found, [*problems, *cross_findings(draft, lists)])
    found = [*document.findings, *outside(found, document.broken)]
    if site is None or found:
        raise ConfigError(document.issues(found))
    return Loaded(site.in_force(text, file, lists), document)


def _validated(document: Document) -> tuple[Site | None, list[Finding]]:
    """Validated as JSON and strictly, as editors do: no text is taken for a number, nor the reverse."""
    try:
        return Site.model_validate_json(json.dumps(document.data), strict=True), []
    except ValidationError as error:
        return None, list(findings(error, Site, document))


def _merged(own: list[Finding], cross: list[Finding]) -> list[Finding]:
    """The models' findings and ours, one of them where both see the same.

    A sink's template is refused as a whole by its model; we know which of its texts is wrong.
    """
    told = {finding.path for finding in own}
    inside = {finding.path[:3] for finding in cross if finding.path[2:3] == ("body",)}
    own = [finding for finding in own if finding.path not in inside]
    return own + [finding for finding in cross if finding.path not in told - inside]
