"""llama.cpp in this process, at its low level: one context, one sequence, the head's state kept.

One line is one pass, always at the same cells of the cache: after a line its cells are dropped and the head's
stay. So a line's logits depend on the head and the line alone, whatever was read before it: the same line
gives the same bits. (Several lines in one pass gain nothing on two cores, which one line keeps busy, and move
probabilities by up to 0.1.)
"""

from __future__ import annotations

import ctypes
import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import structlog

from pipeline.model import adapter, memory, registry
from pipeline.model.options import ModelConfig
from pipeline.model.registry import ModelFile
from schemas.errors import ModelError, ModelMissing, ModelOverflow

# Waiting OpenMP threads that spin starve each other on a busy gateway (under 1 token/s instead of 34-61). The
# variable is read once, when the OpenMP runtime loads, so it is set before anything here can import
# llama_cpp.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Tokens of one step of a pass. Each may be a row of logits (vocabulary x 4 bytes: 25 MB at 128 rows of
# 49,152).
STEP_TOKENS = 128
SEQUENCE = 0
HEADS_KEPT = 3  # profiles whose head state is kept (46 KB a token: 20 MB for a head of 450 tokens)
WARM_UP = "2024-01-01 00:00:00 pump 1 started"

log = structlog.get_logger("andon.model")


class LlamaRuntime:
    """Scores options with a GGUF model (see `Runtime`). Owned by one thread; `close` frees everything it
    took.
    """

    def __init__(self, file: ModelFile, context: int, threads: int) -> None:
        """Loads the model and warms it up. Raises ModelMissing when llama.cpp will not take the file."""
        self._api = _library()
        self._file = file
        self.context = min(context, file.trained_context) if file.trained_context else context
        self._model = self._load()
        try:
            self._context = self._create(threads)
        except ModelError:
            self._api.llama_model_free(self._model)
            raise
        self._memory = self._api.llama_get_memory(self._context)
        self._vocabulary = self._api.llama_model_get_vocab(self._model)
        self._vocabulary_size = int(self._api.llama_vocab_n_tokens(self._vocabulary))
        self._batch = self._api.llama_batch_init(self.context, 0, 1)
        self._head: tuple[int, ...] = ()
        self._heads: OrderedDict[tuple[int, ...], ctypes.Array[ctypes.c_uint8]] = OrderedDict()
        self._closed = False
        self.tuned = False
        self._warm_up()

    @classmethod
    def open(cls, config: ModelConfig) -> Self:
        """The configured model, checked, loaded and warm. Raises ModelMissing with the fix."""
        base = registry.check(config)
        tuned = adapter.Adapter.shipped()
        if tuned is None or not tuned.fits(base):
            return cls._fitting(base, config)
        path = adapter.merged(tuned, base, config)
        runtime = cls._fitting(registry.check(ModelConfig(path=str(path))), config)
        try:
            adapter.check(tuned, runtime)
        except ModelError:
            runtime.close()
            raise
        runtime.tuned = True
        return runtime

    @classmethod
    def _fitting(cls, file: ModelFile, config: ModelConfig) -> Self:
        registry.fits(file, config.context, STEP_TOKENS, memory.available())
        return cls(file, config.context, config.threads)

    @property
    def digest(self) -> str:
        return self._file.sha256

    def tokens(self, text: str) -> list[int]:
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8  # byte-level vocabularies never need more tokens than bytes
        found = (self._api.llama_token * room)()
        count = self._api.llama_tokenize(self._vocabulary, raw, len(raw), found, room, False, False)
        if count < 0:
            raise ModelError(f"the model's tokenizer asked for {-count} tokens for {len(raw)} bytes")
        return list(found[:count])

    def score(
        self, head: Sequence[int], body: Sequence[int], asks: Sequence[int], options: Sequence[int]
    ) -> list[list[float]]:
        if len(head) + len(body) > self.context:
            raise ModelOverflow(f"{len(head)} + {len(body)} tokens exceed the context of {self.context}")
        if not body or not asks:
            return []
        self._take_head(tuple(head))
        try:
            return self._pass(body, len(head), asks, options)
        finally:
            if not self._api.llama_memory_seq_rm(self._memory, SEQUENCE, len(head), -1):
                self._head = ()  # the cache is in doubt: the next line begins from an empty one

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._heads.clear()
        self._api.llama_batch_free(self._batch)
        self._api.llama_free(self._context)
        self._api.llama_model_free(self._model)

    def _load(self) -> Any:
        parameters = self._api.llama_model_default_params()
        parameters.n_gpu_layers = 0
        parameters.use_extra_bufts = False  # repacked weights would be a second copy beside the mapped file
        _LOG.worst = ""
        model = self._api.llama_model_load_from_file(os.fsencode(self._file.path), parameters)
        if not model:
            raise ModelMissing(
                f"llama.cpp cannot load {self._file.path} ({self._file.size} bytes, architecture "
                f"{self._file.architecture}): {_LOG.worst or 'no reason given'}; state another model.path, "
                f"or remove it and {registry.INSTALL}"
            )
        return model

    def _create(self, threads: int) -> Any:
        parameters = self._api.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = self.context
        parameters.n_ubatch = STEP_TOKENS
        parameters.n_seq_max = 1
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = self._api.LLAMA_FLASH_ATTN_TYPE_ENABLED
        parameters.offload_kqv = False
        context = self._api.llama_init_from_model(self._model, parameters)
        if not context:
            raise ModelError(f"no context of {self.context} tokens for {self._file.path}: {_LOG.worst}")
        return context

    def _warm_up(self) -> None:
        """Touches every weight once, so that the first real line is not read at the disk's speed."""
        body = self.tokens(WARM_UP)
        if body:
            self.score((), body, [len(body) - 1], [0])

    def _take_head(self, head: tuple[int, ...]) -> None:
        """Makes the cache hold exactly `head`: as it is, from its kept copy, or by evaluating it."""
        if head == self._head:
            return
        self._head = ()
        self._api.llama_memory_clear(self._memory, False)
        kept = self._heads.get(head)
        if kept is not None:
            self._heads.move_to_end(head)
            if not self._api.llama_state_seq_set_data(self._context, kept, len(kept), SEQUENCE):
                raise ModelError("llama.cpp did not take back the state of the prompt's head")
        elif head:
            self._decode(head, 0, frozenset())
            self._keep(head)
        self._head = head

    def _keep(self, head: tuple[int, ...]) -> None:
        size = self._api.llama_state_seq_get_size(self._context, SEQUENCE)
        state = (ctypes.c_uint8 * size)()
        if self._api.llama_state_seq_get_data(self._context, state, size, SEQUENCE) == size:
            self._heads[head] = state
        while len(self._heads) > HEADS_KEPT:
            self._heads.popitem(last=False)

    def _pass(
        self, body: Sequence[int], start: int, asks: Sequence[int], options: Sequence[int]
    ) -> list[list[float]]:
        self._decode(body, start, frozenset(asks))
        wanted = np.asarray(options, dtype=np.intp)
        rows: list[list[float]] = []
        for position in asks:
            row = self._api.llama_get_logits_ith(self._context, position)
            if not row:
                raise ModelError(f"llama.cpp gave no logits for position {position} of {len(body)}")
            logits = np.ctypeslib.as_array(row, shape=(self._vocabulary_size,))
            rows.append([float(value) for value in logits[wanted]])
        return rows

    def _decode(self, tokens: Sequence[int], start: int, asks: frozenset[int]) -> None:
        batch = self._batch
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = start + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = SEQUENCE
            batch.logits[index] = index in asks
        batch.n_tokens = len(tokens)
        code = self._api.llama_decode(self._context, batch)
        if code != 0:
            raise ModelError(
                f"llama_decode returned {code} for {len(tokens)} tokens at {start}: {_LOG.worst}"
            )


class _Log:
    """Takes llama.cpp's messages off stderr: to our log at debug, the last warning or error kept for our own
    errors.
    """

    def __init__(self) -> None:
        self.worst = ""
        self._set = False

    def attach(self, api: Any) -> None:
        if self._set:
            return
        self._set = True
        self._callback = api.llama_log_callback(self._take)  # kept: llama.cpp holds the bare pointer
        api.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _take(self, level: int, raw: bytes | None, _: object) -> None:
        text = (raw or b"").decode("utf-8", "replace").strip()
        if not text or text.strip(".") == "":
            return  # progress dots
        if level in (3, 4):  # GGML_LOG_LEVEL_WARN, GGML_LOG_LEVEL_ERROR
            self.worst = text
        log.debug("llama.said", level=level, text=text)


_LOG = _Log()


def _library() -> Any:
    """The bindings, imported at the last moment: they cost 40 MB and a service without a model needs none of
    it.
    """
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelMissing(
            f"llama-cpp-python cannot be imported ({error}); pip install llama-cpp-python"
        ) from error
    _LOG.attach(llama_cpp)
    llama_cpp.llama_backend_init()
    return llama_cpp
