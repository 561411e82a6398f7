"""The model as a network that can be tuned: Llama's architecture in torch, frozen weights, low-rank adapters.

Weights come straight from the GGUF file and keep its order of rotary pairs, so the adapter needs no
reordering on its way back. One head is run once for all lines of a batch (LoRA: Hu et al. 2021,
arXiv:2106.09685).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pipeline.tune.samples import Batch

TUNED = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
RANK, ALPHA = 16, 32.0  # 9.8 MB in half precision for 30 layers; the usual alpha of twice the rank
WORKING = torch.bfloat16
PADDING = 0


@dataclass(frozen=True, slots=True)
class Shape:
    layers: int
    heads: int
    heads_kv: int
    head_size: int
    rope_base: float
    epsilon: float

    @classmethod
    def of(cls, file: gguf.GGUFReader) -> Shape:
        def number(key: str) -> float:
            return float(file.fields[f"llama.{key}"].contents())

        heads = int(number("attention.head_count"))
        return cls(
            layers=int(number("block_count")),
            heads=heads,
            heads_kv=int(number("attention.head_count_kv")),
            head_size=int(number("embedding_length")) // heads,
            rope_base=number("rope.freq_base"),
            epsilon=number("attention.layer_norm_rms_epsilon"),
        )


class Adapted(nn.Module):
    """A frozen matrix and the low-rank change beside it, which begins as none."""

    def __init__(self, weight: Tensor, rank: int, alpha: float, chance: torch.Generator) -> None:
        super().__init__()
        self.weight = weight.to(WORKING)
        self.scale = alpha / rank
        self.a = nn.Parameter(
            torch.randn(rank, weight.shape[1], generator=chance) / math.sqrt(weight.shape[1])
        )
        self.b = nn.Parameter(torch.zeros(weight.shape[0], rank))

    def forward(self, x: Tensor) -> Tensor:
        low = functional.linear(x, self.a.to(WORKING))
        return functional.linear(x, self.weight) + functional.linear(low, (self.b * self.scale).to(WORKING))


class Network(nn.Module):
    """A Llama model of a GGUF file with an adapter on every matrix of its layers."""

    def __init__(self, path: Path, seed: int, rank: int = RANK, alpha: float = ALPHA) -> None:
        super().__init__()
        file = gguf.GGUFReader(path)
        self.shape = Shape.of(file)
        weights = {tensor.name: _tensor(tensor) for tensor in file.tensors}
        self.embedding = weights["token_embd.weight"].to(WORKING)
        self.head = weights.get("output.weight", weights["token_embd.weight"]).float()
        self.last_norm = weights["output_norm.weight"].to(WORKING)
        self.norms = [
            [weights[f"blk.{n}.{name}.weight"].to(WORKING) for name in ("attn_norm", "ffn_norm")]
            for n in range(self.shape.layers)
        ]
        chance = torch.Generator().manual_seed(seed)
        self.layers = [
            {name: Adapted(weights[f"blk.{n}.{name}.weight"], rank, alpha, chance) for name in TUNED}
            for n in range(self.shape.layers)
        ]
        self.adapters = nn.ModuleList(matrix for layer in self.layers for matrix in layer.values())

    def adapter(self) -> dict[str, np.ndarray]:
        """The adapter's matrices by their GGUF names."""
        found: dict[str, np.ndarray] = {}
        for n, layer in enumerate(self.layers):
            for name, matrix in layer.items():
                found[f"blk.{n}.{name}.weight.lora_a"] = matrix.a.detach().numpy()
                found[f"blk.{n}.{name}.weight.lora_b"] = matrix.b.detach().numpy()
        return found

    def take(self, matrices: Mapping[str, np.ndarray]) -> None:
        """Begins from an adapter's matrices instead of from none."""
        with torch.no_grad():
            for n, layer in enumerate(self.layers):
                for name, matrix in layer.items():
                    matrix.a.copy_(torch.from_numpy(matrices[f"blk.{n}.{name}.weight.lora_a"].copy()))
                    matrix.b.copy_(torch.from_numpy(matrices[f"blk.{n}.{name}.weight.lora_b"].copy()))

    def options(self, batch: Batch) -> Tensor:
        """Logits [asks, most options] of every ask of the batch in order; missing options are -inf."""
        length = max(len(one.tokens) for one in batch.samples)
        lines = torch.full((len(batch.samples), length), PADDING)
        for row, one in enumerate(batch.samples):
            lines[row, : len(one.tokens)] = torch.tensor(one.tokens)
        states = self._states(torch.tensor(batch.head), lines)
        asked = [(row, at) for row, one in enumerate(batch.samples) for at in one.positions]
        listed = [options for one in batch.samples for options in one.options]
        chosen = states[
            torch.tensor([row for row, _ in asked]), torch.tensor([at for _, at in asked])
        ].float()
        tokens, mask = _padded(listed)
        logits = torch.einsum("ad,aod->ao", chosen, self.head[tokens])
        return logits.masked_fill(~mask, -math.inf)

    def _states(self, head: Tensor, lines: Tensor) -> Tensor:
        """The last hidden states [lines, length, width]; every line sees the head and itself."""
        count, length = lines.shape
        at = len(head)
        x = self.embedding[torch.cat((head, lines.flatten()))]
        places = torch.cat((torch.arange(at), torch.arange(at, at + length).repeat(count)))
        turn = _rotation(places, self.shape)
        for layer, (attention_norm, feed_norm) in zip(self.layers, self.norms, strict=True):
            x = x + self._attend(layer, self._norm(x, attention_norm), at, (count, length), turn)
            y = self._norm(x, feed_norm)
            x = x + layer["ffn_down"](functional.silu(layer["ffn_gate"](y)) * layer["ffn_up"](y))
        return self._norm(x[at:], self.last_norm).view(count, length, -1)

    def _attend(
        self,
        layer: Mapping[str, Adapted],
        x: Tensor,
        at: int,
        lines: tuple[int, int],
        turn: tuple[Tensor, Tensor],
    ) -> Tensor:
        size = self.shape.head_size
        q = _turned(layer["attn_q"](x).view(-1, self.shape.heads, size), turn)
        k = _turned(layer["attn_k"](x).view(-1, self.shape.heads_kv, size), turn)
        v = layer["attn_v"](x).view(-1, self.shape.heads_kv, size)
        head = [part[:at].transpose(0, 1)[None] for part in (q, k, v)]
        own = [part[at:].view(*lines, -1, size).transpose(1, 2) for part in (q, k, v)]
        of_head = _attention(head[0], head[1], head[2], mask=_later(at))
        of_lines = _attention(own[0], own[1], own[2], mask=_later(lines[1]), before=(head[1], head[2]))
        flat = torch.cat(
            (of_head[0].transpose(0, 1).flatten(1), of_lines.transpose(1, 2).flatten(2).flatten(0, 1))
        )
        mixed: Tensor = layer["attn_output"](flat)
        return mixed

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, (x.shape[-1],), weight, self.shape.epsilon)


def _tensor(tensor: gguf.ReaderTensor) -> Tensor:
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    shape = [int(size) for size in reversed(tensor.shape)]
    return torch.from_numpy(np.array(values, dtype=np.float32).reshape(shape))


def _rotation(places: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    rates = shape.rope_base ** (-torch.arange(0, shape.head_size, 2).float() / shape.head_size)
    angles = places.float()[:, None] * rates
    return angles.cos()[:, None].to(WORKING), angles.sin()[:, None].to(WORKING)


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cosine, sine = turn
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)


HIDDEN = -1e4  # added to a score that must not count; -inf has no gradient worth having in half precision


def _later(length: int) -> Tensor:
    """Hides from each token those that come after it."""
    return torch.full((length, length), HIDDEN, dtype=WORKING).triu(1)


def _attention(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor, before: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    """Grouped attention [lines, heads, length, size], to keys all lines share (`before`) and to the line's
    own.

    By hand because torch's fused kernel needs twice the time for its backward pass on a CPU, and would copy
    the shared keys for every line.
    """
    lines, heads, length, size = q.shape
    groups = k.shape[1]
    q = q.reshape(lines, groups, -1, size) * size**-0.5
    scores = ((q @ k.transpose(-1, -2)).view(lines, heads, length, -1) + mask).view(lines, groups, -1, length)
    if before is None:
        return (torch.softmax(scores, -1) @ v).view(lines, heads, length, size)
    keys, values = before[0][0], before[1][0]
    shared = q.transpose(0, 1).reshape(groups, -1, size) @ keys.transpose(-1, -2)
    shared = shared.view(groups, lines, -1, keys.shape[1]).transpose(0, 1)
    share = torch.softmax(torch.cat((shared, scores), -1), -1)
    of_shared = share[..., : keys.shape[1]].transpose(0, 1).reshape(groups, -1, keys.shape[1]) @ values
    mixed = of_shared.view(groups, lines, -1, size).transpose(0, 1) + share[..., keys.shape[1] :] @ v
    return mixed.reshape(lines, heads, length, size)


def _padded(listed: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    most = max(len(options) for options in listed)
    tokens = torch.zeros(len(listed), most, dtype=torch.long)
    mask = torch.zeros(len(listed), most, dtype=torch.bool)
    for row, options in enumerate(listed):
        tokens[row, : len(options)] = torch.tensor(options)
        mask[row, : len(options)] = True
    return tokens, mask
