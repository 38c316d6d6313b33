"""Can the results of two blocks of keys be merged into that of all, whatever the kernel?"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from forgeplan.runtime.parallel.block_attention import CPU, DEFINITION, GPU, Kernel, kernel_for

QUERIES, KEYS, SPLIT, WIDTH = 6, 10, 3, 8


def tensors(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """q, k, v and a gradient of the output: (B, H, S or T, d)."""
    random = torch.Generator().manual_seed(1)
    return [
        torch.randn(2, 3, length, WIDTH, generator=random, dtype=torch.float64).to(dtype)
        for length in (QUERIES, KEYS, KEYS, QUERIES)
    ]


@pytest.mark.parametrize("kernel", [CPU, DEFINITION], ids=["cpu", "definition"])
def test_gradients_of_blocks_are_those_of_the_whole(kernel: Kernel) -> None:
    *leaves, gradient = tensors()
    q, k, v = (x.requires_grad_() for x in leaves)
    scores = q @ k.mT / WIDTH**0.5
    output = scores.softmax(-1) @ v
    wanted = torch.autograd.grad(output, (q, k, v), gradient)
    with torch.no_grad():
        found = []
        for block in (slice(SPLIT), slice(SPLIT, None)):
            _, total = kernel.forward(q, k[:, :, block], v[:, :, block], False)
            assert torch.allclose(total, scores[..., block].logsumexp(-1), rtol=1e-13)
            args = (q, k[:, :, block], v[:, :, block], output, scores.logsumexp(-1))
            found.append(kernel.backward(gradient, *args, False))
    assert torch.allclose(found[0][0] + found[1][0], wanted[0], rtol=1e-12)
    for i in (1, 2):
        assert torch.allclose(torch.cat([found[0][i], found[1][i]], 2), wanted[i], rtol=1e-12)


@pytest.mark.parametrize(
    ("device", "dtype", "width", "fused", "kernel"),
    [
        ("cpu", torch.float64, 6, True, CPU),
        ("cpu", torch.float32, 8, False, DEFINITION),
        ("cuda", torch.bfloat16, 128, True, GPU),
        ("cuda", torch.bfloat16, 128, False, DEFINITION),
        ("cuda", torch.bfloat16, 100, True, DEFINITION),
        ("cuda", torch.bfloat16, 264, True, DEFINITION),
        ("cuda", torch.float32, 128, True, DEFINITION),
    ],
)
def test_the_kernel_is_the_fused_one_where_it_takes_the_queries(
    device: str, dtype: torch.dtype, width: int, fused: bool, kernel: Kernel
) -> None:
    with FakeTensorMode():
        assert kernel_for(torch.empty(1, 1, 4, width, dtype=dtype, device=device), fused) is kernel


def test_the_kernel_of_a_gpu_is_called_as_torch_declares_it() -> None:
    """Shapes only, without a GPU: the numbers are compared where there is one, by `forgeplan selftest`."""
    with FakeTensorMode():
        q, k, v, gradient = (torch.empty_like(x, device="cuda") for x in tensors(torch.bfloat16))
        out, total = GPU.forward(q, k, v, False)
        assert (out.shape, total.shape, total.dtype) == (q.shape, q.shape[:3], torch.float32)
        assert [x.shape for x in GPU.backward(gradient, q, k, v, out, total, False)] == [q.shape, k.shape, v.shape]
