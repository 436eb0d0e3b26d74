"""Compiling the user's text again without repeating Python's warnings about it."""

from __future__ import annotations

import ast
import warnings
from types import CodeType
from typing import Any


def compile_quietly(source: str | ast.Module, filename: str, **options: Any) -> CodeType:
    """compile(), silent about `x is 1` and the like: Python said so when the file was imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(source, filename, "exec", **options)


def parse_quietly(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
