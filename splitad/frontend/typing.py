"""Types by asking Numba: its own inference runs on the text of the normalised function.

One statement is one line, so the line at which Numba assigns a variable says which statement it is, and
the type of that version of the variable is the type of the statement.
"""

from __future__ import annotations

import ast
import linecache
import operator
import types as python_types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
from numba.core import bytecode, compiler, errors, ir, types, untyped_passes
from numba.core.analysis import dead_branch_prune
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NopythonTypeInference

from splitad.errors import InternalError, SplitadError, UnsupportedError
from splitad.frontend.cuda_names import is_cuda_function
from splitad.frontend.normal import NormalFunction, is_temp
from splitad.frontend.render import execute, render

_ITERABLE = (
    types.Array,
    types.BaseTuple,
    types.List,
    types.ListType,
    types.RangeType,
    types.NumpyFlatType,
)


@dataclass(frozen=True, eq=False)
class Typing:
    """The types of one function for given argument types."""

    arg_types: tuple[types.Type, ...]
    return_type: types.Type
    normal: NormalFunction  # keeps the statements alive, which are known by id
    _types: dict[tuple[int, str], types.Type] = field(repr=False)
    _taken: dict[int, bool] = field(repr=False)

    def type_of(self, stmt: ast.stmt, name: str | None = None) -> types.Type | None:
        """The type of the variable that the statement assigns (name: which, where it unpacks).

        None where Numba found the statement to be dead, or where it assigns no variable.  May be literal.
        """
        if name is None:
            name = assigned_name(stmt)
        return None if name is None else self._types.get((id(stmt), name))

    def taken(self, stmt: ast.If) -> bool | None:
        """The branch that is taken, where Numba decided so at compile time; the other one is not typed.

        It does for `x is None`, for constants, and for the number of dimensions of an argument.
        """
        return self._taken.get(id(stmt))


def assigned_name(stmt: ast.stmt) -> str | None:
    """The variable that a normalised statement assigns, if it is one."""
    target = None
    if isinstance(stmt, ast.Assign):
        target = stmt.targets[0]
    elif isinstance(stmt, ast.AugAssign | ast.For):
        target = stmt.target
    return target.id if isinstance(target, ast.Name) else None


def infer(
    normal: NormalFunction, argtypes: tuple[types.Type, ...], flags: compiler.Flags | None = None
) -> Typing:
    """The types of every statement for these argument types (one per argument of `normal`)."""
    text, stmts = render(normal)
    pyfunc = _function(normal, text)
    try:
        typed = _infer(pyfunc, tuple(argtypes), flags, dict(normal.locals))
    except SplitadError:
        raise
    except Exception as error:  # Numba has its own errors, and assertions
        raise _explain(normal, argtypes, error, stmts, pyfunc.__code__.co_filename) from error
    found: dict[tuple[int, str], types.Type] = {}
    for line, name, type_, value in _assignments(typed, pyfunc.__code__.co_filename):
        stmt = stmts.get(line)
        if stmt is None:
            continue
        found.setdefault((id(stmt), name), type_)
        _check_iterable(normal, stmt, value, typed.typemap)
    taken = {
        id(stmts[line]): branch for line, branch in typed.metadata[_TAKEN].items() if line in stmts
    }
    return Typing(tuple(argtypes), typed.return_type, normal, found, taken)


def _function(normal: NormalFunction, text: str) -> python_types.FunctionType:
    filename = f"<normalised {normal.name}>"
    # so that Numba can quote a line in its messages
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return execute(normal, text, filename)


# ---- Numba's pipeline, up to type inference ------------------------------------------------------


class _Typer(compiler.CompilerBase):
    """Numba's passes on untyped code, then type inference, and no more."""

    def define_pipelines(self) -> list[PassManager]:
        untyped = compiler.DefaultPassBuilder.define_untyped_pipeline(self.state)
        manager = PassManager("splitad typing")
        for pass_, description in untyped.passes:
            if pass_ is untyped_passes.DeadBranchPrune:
                pass_ = _Prune
            if pass_ not in _SKIPPED:
                manager.add_pass(pass_, description)
        manager.add_pass(NopythonTypeInference, "type inference")
        manager.finalize()
        return [manager]


_IDENTITY = (operator.is_, operator.is_not)
_TAKEN = "splitad: branches taken"


@register_pass(mutates_CFG=True, analysis_only=False)
class _Prune(FunctionPass):  # type: ignore[misc]
    """Numba's pruning of dead branches, repeated, and noting which branch is left.

    What is one jump in the user's bytecode (`if x is not None and x > 0`) is an `if` on a variable here,
    which is seen to be constant only after the first `if` is gone.
    """

    _name = "splitad_prune"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        taken = state.metadata.setdefault(_TAKEN, {})
        while True:
            before = {label: b.terminator for label, b in state.func_ir.blocks.items()}
            _unite_constants(state.func_ir._definitions, state.args)
            dead_branch_prune(state.func_ir, state.args)
            pruned = False
            for label, old in before.items():
                block = state.func_ir.blocks.get(label)
                if block is None or not isinstance(old, ir.Branch):
                    continue
                if isinstance(block.terminator, ir.Jump):
                    taken[old.loc.line] = block.terminator.target == old.truebr
                    pruned = True
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
            if not pruned:
                return True


def _unite_constants(definitions: dict[str, list[Any]], argtypes: Any) -> None:
    """A temporary that is False wherever it is assigned (a pruned `and`) is a constant."""
    for name in filter(is_temp, definitions):
        values = [_constant(definitions, argtypes, d) for d in definitions[name]]
        if len(values) > 1 and type(values[0]) is bool and all(v is values[0] for v in values):
            definitions[name] = [ir.Const(values[0], ir.unknown_loc)]


def _constant(definitions: dict[str, list[Any]], argtypes: Any, value: Any) -> Any:
    """The constant that an IR value is (the type `none` for None), or an object unlike any constant."""
    while isinstance(value, ir.Var) and len(definitions.get(value.name, ())) == 1:
        (value,) = definitions[value.name]
    if isinstance(value, ir.Const):
        return types.none if value.value is None else value.value
    if isinstance(value, ir.Arg):
        given = argtypes[value.index]
        if isinstance(given, types.Omitted):
            given = types.none if given.value is None else given
        return types.none if isinstance(given, types.NoneType) else value
    if isinstance(value, ir.Expr) and value.op == "binop" and value.fn in _IDENTITY:
        sides = [_constant(definitions, argtypes, side) for side in (value.lhs, value.rhs)]
        if all(isinstance(side, types.NoneType) for side in sides):
            return value.fn is operator.is_
    return value


# A call stays a call, also of a function with inline="always": the line says whose it is.  There are no
# closures left, and Numba's inlining of them makes arrays of lists and drops stores that it takes for dead.
_SKIPPED = (
    untyped_passes.InlineInlinables,
    untyped_passes.InlineClosureLikes,
    untyped_passes.WithLifting,
)


def _infer(
    pyfunc: Callable[..., Any],
    argtypes: tuple[types.Type, ...],
    flags: compiler.Flags | None,
    locals_: dict[str, Any],
) -> Any:
    if flags is None:
        flags = compiler.Flags()
        flags.nrt = True  # otherwise no array may be returned
    with global_compiler_lock:
        typer = _Typer(
            cpu_target.typing_context,
            cpu_target.target_context,
            None,
            argtypes,
            None,
            flags,
            locals_,
        )
        state = typer.state
        # otherwise every typing error turns into an AttributeError
        state.status = compiler._CompileStatus(False)
        state.func_id = bytecode.FunctionIdentity.from_function(pyfunc)
        untyped_passes.ExtractByteCode().run_pass(state)
        state.lifted, state.lifted_from = (), None
        with ConfigStack().enter(flags.copy()):
            # what there is to warn of, Numba says when the user's own function is compiled
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", errors.NumbaWarning)
                for manager in typer.define_pipelines():
                    manager.run(state)
    return state


def _assignments(state: Any, filename: str) -> Any:
    """(line, variable, type, value) of every assignment to a named variable."""
    for block in state.func_ir.blocks.values():
        for inst in block.body:
            if not isinstance(inst, ir.Assign) or inst.loc.filename != filename:
                continue
            if isinstance(inst.value, ir.Expr) and inst.value.op == "phi":
                continue
            name = inst.target.name
            if name not in state.typemap or name.startswith("$"):
                continue
            # versions are called x.1, and those of a parameter assigned anew x.1.2; a user's name has no dot
            yield inst.loc.line, name.partition(".")[0], state.typemap[name], inst.value


# ---- refusals --------------------------------------------------------------------------------------


def _check_iterable(normal: NormalFunction, stmt: ast.stmt, value: Any, typemap: Any) -> None:
    """A loop over a container was written as one over 0..len: right for sequences only."""
    subscript = getattr(stmt, "value", None)
    if not getattr(subscript, "iterates", False):
        return
    owner = getattr(value, "value", None)
    owner_type = typemap.get(owner.name) if isinstance(owner, ir.Var) else None
    if owner_type is not None and not isinstance(owner_type, _ITERABLE):
        raise UnsupportedError(
            f"A loop over a {owner_type} is not supported.",
            normal.loc_of(stmt),
            "Loop over a range, an array, a list or a tuple.",
        )


def _explain(
    normal: NormalFunction,
    argtypes: tuple[types.Type, ...],
    error: Exception,
    stmts: dict[int, ast.stmt],
    filename: str,
) -> Exception:
    """What to raise when Numba rejects the normalised function.

    Code that plain njit rejects too gets Numba's own message about the user's lines.
    """
    name = normal.pyfunc.__name__
    own: Any = normal.pyfunc.__globals__.get(name)
    if not is_cuda_function(own):
        if getattr(own, "py_func", None) is not normal.pyfunc:
            own = numba.njit(normal.pyfunc, locals=dict(normal.locals))
        try:
            own.compile(argtypes)
        except Exception as plain:
            return plain
    loc = getattr(error, "loc", None)
    stmt = stmts.get(loc.line) if loc is not None and loc.filename == filename else None
    where = normal.loc if stmt is None else normal.loc_of(stmt)
    if stmt is None:
        return InternalError(f"Numba cannot type the normalised {normal.name}: {error}", where)
    over = getattr(getattr(stmt, "value", None), "iter_len", "")
    if over:  # what plain njit iterates over, but has no length
        generator = "generator(" in str(error)
        hint = (
            "Write the generator's loop here, or return its values in an array."
            if generator
            else "Loop over a range, an array (or its .flat), np.ndindex, np.ndenumerate, a list or a tuple."
        )
        what = f"the generator `{over}`" if generator else f"`{over}`"
        return UnsupportedError(f"A loop over {what} is not supported.", where, hint)
    lines = [line for line in str(error).strip().splitlines() if not line.startswith("Failed in")]
    reason = lines[0] if lines else type(error).__name__
    return UnsupportedError(
        f"Numba cannot type this in its normalised form: {reason}",
        where,
        "splitad needs code in which each operation by itself can be typed: write this statement in "
        "another way (a loop over an index, say).",
    )
