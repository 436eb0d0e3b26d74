"""Which names a piece of syntax binds, by Python's scoping rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.Lambda
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """node and all below it that belongs to the same scope (of an inner function only its header)."""
    yield node
    for child in header(node) if isinstance(node, Scope) else ast.iter_child_nodes(node):
        yield from own_nodes(child)


def header(node: Scope) -> list[ast.expr]:
    """What an inner function evaluates in the scope around it."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases]
    defaults = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    return defaults if isinstance(node, ast.Lambda) else [*node.decorator_list, *defaults]


def parameters(args: ast.arguments) -> list[str]:
    """The names of all parameters."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    every += [a for a in (args.vararg, args.kwarg) if a is not None]
    return [a.arg for a in every]


def local_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Parameters and every name that the function binds; a comprehension's variables are not its own."""
    names = set(parameters(node.args))
    body = node.body if isinstance(node.body, list) else [node.body]
    for stmt in body:
        names |= bound(stmt)
    return names


def bound(node: ast.AST) -> set[str]:
    """Names bound in this piece of syntax, in its own scope."""
    names: set[str] = set()
    for child in own_nodes(node):
        if isinstance(child, ast.NamedExpr):
            names.add(child.target.id)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(child.name)
        elif isinstance(child, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).split(".")[0] for a in child.names}
    return names | _stored(node)


def _stored(node: ast.AST) -> set[str]:
    if isinstance(node, Scope):
        return set().union(*(map(_stored, header(node))))
    if isinstance(node, Comprehension):
        # its targets are its own; assignments by := were collected by the caller
        return set()
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store | ast.Del) else set()
    return set().union(*(map(_stored, ast.iter_child_nodes(node))))


def comprehension_targets(node: Comprehension) -> set[str]:
    return set().union(*(_stored(g.target) for g in node.generators))


def bound_by_walrus(node: ast.AST) -> set[str]:
    return {n.target.id for n in own_nodes(node) if isinstance(n, ast.NamedExpr)}


def free_names(node: ast.AST) -> list[str]:
    """Every name that is read here but bound around, in order, without doubles."""
    return list(dict.fromkeys(_free(node, frozenset())))


def _free(node: ast.AST, own: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Name):
        if node.id not in own:
            yield node.id
        return
    inside: Iterator[ast.AST] | list[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        for part in header(node):
            yield from _free(part, own)
        own |= local_names(node)
        inside = [*node.body] if isinstance(node.body, list) else [node.body]
    elif isinstance(node, Comprehension):
        yield from _free(node.generators[0].iter, own)
        own |= comprehension_targets(node)
    for child in inside:
        yield from _free(child, own)
