"""What is compared: the tools, and whether they are installed."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType

OWN = "splitad"

# tool -> the package it needs, the distribution that brings it, the module with its programs
TOOLS = {
    OWN: ("splitad", "splitad", "benchmarks.own"),
    "jax": ("jax", "jax", "benchmarks.peers.jax_kernels"),
    "torch": ("torch", "torch", "benchmarks.peers.torch_kernels"),
    "torch_compile": ("torch", "torch", "benchmarks.peers.torch_compile"),
    "autograd": ("autograd", "autograd", "benchmarks.peers.autograd_kernels"),
    "warp": ("warp", "warp-lang", "benchmarks.peers.warp_kernels"),
    "warp_in_place": ("warp", "warp-lang", "benchmarks.peers.warp_in_place"),
}


def installed(tool: str) -> bool:
    return find_spec(TOOLS[tool][0]) is not None


def tool_version(tool: str) -> str:
    try:
        return version(TOOLS[tool][1])
    except PackageNotFoundError:
        return "unknown"


def module_of(tool: str) -> ModuleType:
    """The module with the tool's `program` and `warm_up`."""
    return importlib.import_module(TOOLS[tool][2])
