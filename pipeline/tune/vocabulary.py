"""The model's own tokenizer, without the model: training shows exactly the tokens that reading will."""

from __future__ import annotations

from pathlib import Path

import llama_cpp


class Vocabulary:
    """Tokens of a GGUF file's vocabulary, as the runtime makes them: plain text, no control tokens."""

    def __init__(self, path: Path) -> None:
        self._model = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
        self._known: dict[str, list[int]] = {}

    def __call__(self, text: str) -> list[int]:
        if text not in self._known:
            raw = text.encode("utf-8", "replace")
            found = self._model.tokenize(raw, add_bos=False, special=False)
            if len(raw) > KEPT_BYTES:
                return found
            self._known[text] = found
        return self._known[text]


KEPT_BYTES = 24  # rows and label words come again and again, lines do not
