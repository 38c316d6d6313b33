"""What would someone write who wants this one model trained, in plain PyTorch, and nothing around it?"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# B batch, S sequence, D model width, H heads, K kv heads, V vocabulary


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, kv_heads: int, ffn: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.attention_norm, self.mlp_norm = nn.RMSNorm(dim, 1e-5), nn.RMSNorm(dim, 1e-5)
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.gate, self.up = nn.Linear(dim, ffn, bias=False), nn.Linear(dim, ffn, bias=False)
        self.down = nn.Linear(ffn, dim, bias=False)

    def forward(self, x_BSD: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x_BSD = x_BSD + self.attend(self.attention_norm(x_BSD), cos, sin)
        hidden = self.mlp_norm(x_BSD)
        return x_BSD + self.down(F.silu(self.gate(hidden)) * self.up(hidden))

    def attend(self, x_BSD: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, dim = x_BSD.shape
        query = self.wq(x_BSD).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        key = self.wk(x_BSD).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        value = self.wv(x_BSD).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        query, key = rotated(query, cos, sin), rotated(key, cos, sin)
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.wo(out.transpose(1, 2).reshape(batch, length, dim))


class Decoder(nn.Module):
    """Embedding and head are one matrix."""

    def __init__(self, vocab: int, layers: int, dim: int, heads: int, kv_heads: int, ffn: int, context: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, kv_heads, ffn) for _ in range(layers))
        self.norm = nn.RMSNorm(dim, 1e-5)
        frequencies = 10_000.0 ** (-torch.arange(0, dim // heads, 2) / (dim // heads))
        angles = torch.outer(torch.arange(context), frequencies)
        self.register_buffer("cos", angles.cos().repeat(1, 2))
        self.register_buffer("sin", angles.sin().repeat(1, 2))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens_BS: Tensor) -> Tensor:
        """Logits (B, S, V)."""
        length = tokens_BS.shape[1]
        x_BSD = self.embedding(tokens_BS)
        for block in self.blocks:
            x_BSD = block(x_BSD, self.cos[:length], self.sin[:length])
        return F.linear(self.norm(x_BSD), self.embedding.weight)


def rotated(x_BHSd: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x_BHSd.chunk(2, dim=-1)
    return x_BHSd * cos + torch.cat([-second, first], dim=-1) * sin


class Loop:
    """AdamW, clipping at 1, a mean over all labels."""

    def __init__(self, model: Decoder) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), fused=True)

    def step(self, tokens_BS: Tensor, labels_BS: Tensor) -> float:
        logits_BSV = self.model(tokens_BS)
        loss = F.cross_entropy(logits_BSV.flatten(0, 1), labels_BS.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()
