"""The two seams of reading: what reads a line (Reader), and what scores the options of a prompt (Runtime).

A new runtime is one file that fulfils `Runtime`; nothing else in andon knows how a model is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.fields.definition import Labels, Profile
from schemas.extraction import Verdict


class Reader(Protocol):
    """Reads lines: fields as spans or null, and the decisions it would take.

    `name` is "model:<first 12 digits of the file's sha256>" or "rules:<version>"; it goes into evidence and
    plans. `read` returns one verdict a text, in order. It never raises for odd text, only ModelError for
    failing machinery. The same text gives the same verdict, alone or in company.
    """

    @property
    def name(self) -> str: ...

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]: ...


class Runtime(Protocol):
    """Runs a language model that scores options; it writes no text.

    `digest` is the sha256 of the model file in use, `context` the most tokens a head and a body may have
    together. Not thread-safe: one thread owns it.
    """

    @property
    def digest(self) -> str: ...

    @property
    def context(self) -> int: ...

    @property
    def tuned(self) -> bool:
        """Whether it was tuned on the prompt it is given."""
        ...

    def tokens(self, text: str) -> list[int]:
        """`text` as plain text: control tokens written in it are ordinary characters."""
        ...

    def score(
        self, head: Sequence[int], body: Sequence[int], asks: Sequence[int], options: Sequence[int]
    ) -> list[list[float]]:
        """Logits of the tokens `options` after each position in `asks` (indices into `body`, rising).

        The head's state is kept, so a second body under the same head costs only itself. Raises ModelOverflow
        when head and body exceed `context`, ModelError when the runtime fails.
        """
        ...

    def close(self) -> None: ...
