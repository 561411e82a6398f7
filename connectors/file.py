"""File and stdin sources: lines of a file (followed, rotation noticed) or of standard input."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from connectors.base import Framing, SourceOptions


class FileConfig(SourceOptions):
    type: Literal["file"]
    path: str
    follow: bool = Field(default=True, description="keep reading as the file grows; false: end at end of file")
    start: Literal["beginning", "end"] = Field(default="beginning", description="where a file never seen before starts")
    framing: Framing = "lines"


class StdinConfig(SourceOptions):
    type: Literal["stdin"]
    framing: Framing = "lines"
