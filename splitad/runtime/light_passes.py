"""Numba's passes on untyped code, without the lifetimes that each of them finds out for the next.

    LIGHT[pass] -> the one to take in its place

Which variables live where, Numba works out anew after each of these passes.  Only generators, `with` and
literal_unroll ask for it before code is made; for functions that have none of them it is found once, by the
pass that puts in where variables end.
"""

from __future__ import annotations

import dis
from typing import Any

from numba.core.compiler_machinery import register_pass
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import build_definitions
from numba.core.rewrites import rewrite_registry
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import PreLowerStripPhis
from numba.core.untyped_passes import (
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

from splitad.runtime.light_ssa import reconstruct


def _settle(func_ir: Any) -> None:
    """What Numba's post-processing does beside."""
    func_ir.blocks = canonicalize_cfg(func_ir.blocks)
    func_ir.generator_info = None


@register_pass(mutates_CFG=True, analysis_only=False)
class _Processing(IRProcessing):  # type: ignore[misc]
    _name = "splitad_ir_processing"

    def run_pass(self, state: Any) -> bool:
        _settle(state.func_ir)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _GenericRewrites(GenericRewrites):  # type: ignore[misc]
    _name = "splitad_generic_rewrites"

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        for kind in rewrite_registry.rewrites["before-inference"]:
            rewrite = kind(state)
            for label in list(blocks):
                while rewrite.match(state.func_ir, blocks[label], state.typemap, state.calltypes):
                    blocks[label] = rewrite.apply()
                    blocks[label].verify()
        _settle(state.func_ir)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Ssa(ReconstructSSA):  # type: ignore[misc]
    _name = "splitad_ssa"

    def run_pass(self, state: Any) -> bool:
        state.func_ir.blocks = reconstruct(state.func_ir.blocks)
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        _settle(state.func_ir)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _StripPhis(PreLowerStripPhis):  # type: ignore[misc]
    _name = "splitad_strip_phis"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        _settle(state.func_ir)
        return True


class _Interpreter(Interpreter):  # type: ignore[misc]
    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        """Without the search for what `with` leaves, which has a handler, and for dicts put together."""
        code = self.func_id.func.__code__
        operations = {dis.opname[op] for op in code.co_code[::2]}
        not_needed = set()
        if not code.co_exceptiontable:
            not_needed.add("peep_hole_delete_with_exit")
        if operations.isdisjoint(_OF_DICTS):
            not_needed.add("peep_hole_fuse_dict_add_updates")
        needed = [each for each in peepholes if each.__name__ not in not_needed]
        return super().post_process(needed, func_ir)


_OF_DICTS = {"BUILD_MAP", "BUILD_CONST_KEY_MAP", "DICT_UPDATE", "DICT_MERGE", "MAP_ADD"}


@register_pass(mutates_CFG=True, analysis_only=False)
class _Bytecode(TranslateByteCode):  # type: ignore[misc]
    _name = "splitad_translate_bytecode"

    def run_pass(self, state: Any) -> bool:
        state["func_ir"] = _Interpreter(state["func_id"]).interpret(state["bc"])
        return True


LIGHT = {
    TranslateByteCode: _Bytecode,
    IRProcessing: _Processing,
    GenericRewrites: _GenericRewrites,
    ReconstructSSA: _Ssa,
    PreLowerStripPhis: _StripPhis,
}
