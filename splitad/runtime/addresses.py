"""Names for the addresses that compiled code holds, so that the code can be kept on disk.

    give_name(address, name, owner)    code that holds the address may be kept: it holds the name instead
    name_of(address) -> str | None
    is_known(name) -> bool             whether machine code that uses the name can be loaded now

A name must say all that matters of what is at the address: code that was compiled with one object there is
loaded in a process that has another one under the same name.  It is good as long as `owner` lives.

Names are LLVM's symbols, one table for the whole process.
"""

from __future__ import annotations

import weakref
from typing import Any

import llvmlite.binding as llvm

_names: dict[int, str] = {}


def give_name(address: int, name: str, owner: Any) -> None:
    """See the module; what had the name before loses it."""
    llvm.add_symbol(name, address)
    _names[address] = name
    weakref.finalize(owner, _forget, address, name).atexit = False


def _forget(address: int, name: str) -> None:
    if _names.get(address) == name:  # by now another object may be there
        del _names[address]


def name_of(address: int) -> str | None:
    """The name of what is at an address."""
    return _names.get(address)


def is_known(name: str) -> bool:
    """Whether LLVM finds the symbol."""
    return llvm.address_of_symbol(name) is not None
