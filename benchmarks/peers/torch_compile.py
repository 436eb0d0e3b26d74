"""The kernels in PyTorch, through torch.compile."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.peers import torch_kernels

program = partial(torch_kernels.program, compile=True)


def warm_up() -> None:
    torch_kernels.warm_up()
    x = torch.ones(3, requires_grad=True)
    torch.autograd.grad(torch.compile(lambda x: torch.sum(x * x))(x), x)
