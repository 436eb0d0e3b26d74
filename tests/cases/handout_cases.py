"""Faults that users of other AD tools really met (see `source`), each as a small self-contained function.

Nothing here depends on splitad: an adapter reads CASES and drives the library, and
`python tests/cases/handout_cases.py` checks the cases themselves (below).

What an ordinary case states
----------------------------
`fn` is a plain Python function that numba.njit compiles (with the options in `jit`).  `args()` gives
fresh arguments.  A *key* names a differentiable leaf: a position, or a position followed by field names,
e.g. (0, 'h').  The loss is

    L = <cotangent, returned value> + sum over keys of <seeds[key], final content of key>

(`cotangent` is 1.0 for a scalar, an array for an array, a tuple for a tuple, None when nothing is
returned.)  `seeds` is what the shadow holds when the pullback starts, zeros for a key that is not listed;
`expected[key]` is what it holds when the pullback is over, which is dL / d(initial content of key).  For
an argument that is never written this reads as "shadow += gradient"; for one that is overwritten, as "the
cotangent of the final content goes in, the cotangent of the initial content comes out".  A field that is
rebound (s.h = new array) counts by its final value.

`const`      positions that the caller declares inactive (everything else that is float is active, also
             workspaces that are not in `wrt`).
`aliases`    groups of keys that share storage: they must be given one shared shadow.
`post`       content after the forward pass.   `value`  the returned value.
`unchanged`  keys that neither the forward pass nor the pullback may alter.
`allow_error` refusing the case with a clear error is as good as the right answer.  A silently wrong
             answer is always a failure.
`accept`     for kind 'subgrad': predicate on {key: gradient}; `expected` is one example.
`limits`     {'peak_mb': .., 'seconds': ..} for forward + pullback, compilation not counted.

Kinds: value, state (also look at `post`/`unchanged`), subgrad, error, script, parallel.

kind 'error': `error` says what the message should make clear, `error_at` is one of 'declare' (when the
derivative is asked for), 'forward', 'pullback'.  With allow_error False the error is the only right
outcome, unless `expected` is given, then that is right as well.

kind 'script': `script` is a list of steps,
    ('args', name, builder)              arguments = builder(env); env holds those built before
    ('forward', tape, name)              run the forward pass, keep the tape
    ('write', name, position, array)     the caller overwrites an argument in place
    ('pullback', tape, cotangent, {position: shadow name})
                                         a shadow is zeros when its name is first met, and is
                                         accumulated into after that
    ('check', shadow name, field or None, expected array)
`refs` gives, for each check, (loss(f, *args), builder, key) on which finite differences are taken by the
self-check: it compiles every fn under numba, compares `value` and `post`, and compares `expected` with
central differences (Richardson-extrapolated, the step chosen by a step study).
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import float64, njit, prange
from numba.experimental import jitclass


@dataclass
class Case:
    id: str
    source: str
    fault: str
    fn: Callable
    args: Callable[[], tuple] = None
    wrt: tuple = ()
    expected: dict = field(default_factory=dict)
    kind: str = "value"
    cotangent: Any = 1.0
    seeds: dict = field(default_factory=dict)
    value: Any = None
    post: dict = field(default_factory=dict)
    const: tuple = ()
    aliases: tuple = ()
    unchanged: tuple = ()
    allow_error: bool = False
    error: str = ""
    error_at: str = ""
    accept: Callable = None
    script: list = None
    refs: dict = None
    jit: dict = field(default_factory=dict)
    limits: dict = None
    rtol: float = 1e-9
    atol: float = 1e-11
    how: str = "analytic"
    fd_args: Callable = None  # other arguments for the finite differences (float64)
    fd_tol: float = 2e-7
    fd_sample: int = None  # check only that many entries of each leaf
    note: str = ""


def A(*v):
    return np.array(v, dtype=np.float64)


@jitclass([("p1", float64[::1]), ("p2", float64)])
class TwoFields:
    def __init__(self, p1, p2):
        self.p1 = p1
        self.p2 = p2


@jitclass([("W", float64[:, ::1]), ("U", float64[:, ::1]), ("h", float64[::1])])
class Cell:
    def __init__(self, W, U, h):
        self.W = W
        self.U = U
        self.h = h


def inplace_square_twice(x):
    a = x.copy()
    for _ in range(2):
        for i in range(a.size):
            a[i] = a[i] * a[i] + 1.0
    return a.sum()


def overwrite_input(x):
    x[0] = x[0] * x[0]
    return x[0] * x[0]


def workspace_least_squares(y, X, beta, r):
    np.dot(X, beta, r)
    r[:] = y - r
    return 0.5 * np.sum(r * r)


def nonzero_shadow(x):
    return np.sum(x) + np.sum(x * x)


def same_array_both_args(a, b):
    s = 0.0
    for i in range(a.size):
        s += a[i] * b[i] * b[i]
    return s


def struct_field_rebind(x, s):
    s.p1 = s.p1 + 1.0
    s.p2 = s.p2 + 2.0 * x * x
    return s.p2


def rnn_sequence_state(cell, xs):
    acc = 0.0
    for t in range(xs.shape[0]):
        cell.h = np.tanh(np.dot(cell.W, xs[t]) + np.dot(cell.U, cell.h))
        acc += np.sum(cell.h * cell.h)
    return acc


def interleaved_tapes(x):
    y = x * x
    for i in range(y.size):
        y[i] = np.exp(-y[i]) * x[i]
    return np.sum(y)


def sum_until_break(v, cap):
    s = 0.0
    for i in range(v.size):
        s += v[i] * v[i]
        if s > cap:
            break
        s += 0.5 * v[i]
    return s


def triangular_range(M):
    s = 0.0
    for i in range(M.shape[0]):
        for j in range(i, M.shape[1]):
            s = s + M[i, j] * M[i, j] * (1.0 + i)
    return s


def value_kept_across_loop(x, s, n):
    g = x[0] * x[1]
    acc = 0.0
    for k in range(n):
        acc += s[k] * s[k]
    return g * acc + np.sin(g)


def guarded_sqrt(x):
    s = 0.0
    for i in range(x.size):
        if x[i] >= 1.0:
            s += np.sqrt(x[i])
        else:
            s += x[i]
    return s


def gather_repeated(x, idx, w):
    y = x[idx]
    return np.sum(w * y * y)


def float32_shadow(x):
    return np.sum(np.sin(x) * 0.2)


def broadcast_inplace(M, b, c):
    M += b
    M *= c.reshape(-1, 1)
    return np.sum(M * M)


def prange_fanout(out, a):
    for i in prange(out.size):
        out[i] = a * a + out[i]


_X3 = A(1.0, -2.0, 0.5)
_LSQ_X = np.array([[1.0, 2.0], [0.5, -1.0], [-1.5, 0.25]])
_LSQ_y = A(1.0, -0.5, 2.0)
_LSQ_b = A(0.3, -0.7)
_LSQ_r = _LSQ_y - _LSQ_X @ _LSQ_b
_W = np.array([[0.5, -0.3], [0.2, 0.4], [-0.6, 0.1]])
_U = np.array([[0.1, 0.3, -0.2], [0.0, -0.4, 0.5], [0.25, 0.15, 0.05]])
_H = A(0.2, -0.1, 0.3)
_XS = np.array([[1.0, -0.5], [0.3, 0.8], [-0.9, 0.4]])


def _rnn_args():
    return Cell(_W.copy(), _U.copy(), _H.copy()), _XS.copy()


def _same_args():
    a = A(1.0, -2.0, 0.5)
    return a, a


CASES = [
    Case(
        "inplace_square_twice",
        "NVIDIA/warp#1294 (part A)",
        "a statement that reads and writes the same array element gets a wrong gradient",
        inplace_square_twice,
        lambda: (_X3.copy(),),
        (0,),
        {0: 4.0 * _X3 * (_X3**2 + 1.0)},
        value=float(np.sum((_X3**2 + 1.0) ** 2 + 1.0)),
    ),
    Case(
        "overwrite_input",
        "groups.google.com/g/enzyme-dev/c/oQD4uKrsC08",
        "gradient of an overwritten input is meant at its initial value",
        overwrite_input,
        lambda: (A(1.5),),
        (0,),
        {0: A(4 * 1.5**3)},
        kind="state",
        post={0: A(2.25)},
        value=1.5**4,
    ),
    Case(
        "workspace_least_squares",
        "EnzymeAD/Enzyme.jl#1340",
        "all-zero gradient when the residual lives in a caller-provided buffer",
        workspace_least_squares,
        lambda: (_LSQ_y.copy(), _LSQ_X.copy(), _LSQ_b.copy(), np.full(3, 7.0)),
        (0, 1, 2, 3),
        {0: _LSQ_r, 1: -np.outer(_LSQ_r, _LSQ_b), 2: -_LSQ_X.T @ _LSQ_r, 3: np.zeros(3)},
        kind="state",
        post={3: _LSQ_r},
        value=0.5 * float(_LSQ_r @ _LSQ_r),
    ),
    Case(
        "nonzero_shadow",
        "QuantumKitHub/TensorKit.jl#543; EnzymeAD/Reactant.jl#1504",
        "a rule assigns to the shadow instead of adding to it, losing what was there",
        nonzero_shadow,
        lambda: (_X3.copy(),),
        (0,),
        {0: A(10.0, 20.0, 30.0) + 1.0 + 2.0 * _X3},
        seeds={0: A(10.0, 20.0, 30.0)},
    ),
    Case(
        "same_array_both_args",
        "chalk-lab/Mooncake.jl#1081",
        "one array passed as two arguments: both contributions belong in one shadow",
        same_array_both_args,
        _same_args,
        (0,),
        {0: 3.0 * _X3**2},
        aliases=((0, 1),),
    ),
    Case(
        "struct_field_rebind",
        "discourse.julialang.org/t/mutable-objects-in-enzyme-jl/99433",
        "rebinding one field of a mutable struct turns the derivative through another to 0",
        struct_field_rebind,
        lambda: (1.0, TwoFields(A(2.0, 3.0), 1.0)),
        (0, (1, "p1"), (1, "p2")),
        {0: 4.0, (1, "p1"): np.zeros(2), (1, "p2"): 1.0},
        kind="state",
        post={(1, "p1"): A(3.0, 4.0), (1, "p2"): 3.0},
        value=3.0,
    ),
    Case(
        "rnn_sequence_state",
        "EnzymeAD/Enzyme.jl#2302; FluxML/Flux.jl#1483",
        "recurrent layer that replaces its own hidden state: crash or lost time dependence",
        rnn_sequence_state,
        _rnn_args,
        ((0, "W"), (0, "U"), (0, "h"), 1),
        {
            (0, "W"): np.array(
                [
                    [1.613208445687505, -0.42553329941512746],
                    [0.5360850360118508, -0.2877720141298308],
                    [-1.4359256794197948, 0.9016802502294702],
                ]
            ),
            (0, "U"): np.array(
                [
                    [0.2605205866282155, -0.042286065351840964, 0.030353176401380872],
                    [0.08537480393606754, -0.05656551493181719, 0.16386773299157412],
                    [0.05524199234046698, 0.15333994938322673, -0.3456792599908387],
                ]
            ),
            (0, "h"): np.array([-0.12103005869295742, -0.07757398949173885, 0.04827099485888279]),
            1: np.array(
                [
                    [1.0054823033406568, -0.12630864889186705],
                    [0.035986295050168766, -0.09418640364999044],
                    [-0.8434427176025464, 0.28728501917402943],
                ]
            ),
        },
        kind="state",
        post={(0, "h"): np.array([-0.502728657834248, -0.018559689184006967, 0.5500038145901559])},
        how="complex step on the plain Python function",
    ),
    Case(
        "interleaved_tapes",
        "JuliaDiff/DifferentiationInterface.jl#142",
        "two forward passes before either pullback: one tape overwrites the other",
        interleaved_tapes,
        kind="script",
        script=[
            ("args", "A", lambda env: (A(0.3, -1.2),)),
            ("args", "B", lambda env: (A(2.0, 0.5, -0.4),)),
            ("forward", "tA", "A"),
            ("forward", "tB", "B"),
            ("pullback", "tA", 1.0, {0: "sA"}),
            ("pullback", "tB", 2.0, {0: "sB"}),
            ("check", "sA", None, np.exp(-A(0.09, 1.44)) * (1 - 2 * A(0.09, 1.44))),
            ("check", "sB", None, 2.0 * np.exp(-A(4.0, 0.25, 0.16)) * (1 - 2 * A(4.0, 0.25, 0.16))),
        ],
        refs={
            ("sA", None): (lambda f, x: f(x), lambda env: (A(0.3, -1.2),), 0),
            ("sB", None): (lambda f, x: 2.0 * f(x), lambda env: (A(2.0, 0.5, -0.4),), 0),
        },
    ),
    Case(
        "sum_until_break",
        "EnzymeAD/Enzyme#1809",
        "loop left by a break whose position depends on the data",
        sum_until_break,
        lambda: (A(1.0, 2.0, 3.0, 4.0), 12.0),
        (0, 1),
        {0: A(2.5, 4.5, 6.0, 0.0), 1: 0.0},
        value=1.0 + 0.5 + 4.0 + 1.0 + 9.0,
    ),
    Case(
        "triangular_range",
        "google/tangent#31",
        "inner loop whose range starts at the outer index: differentiation fails",
        triangular_range,
        lambda: (np.arange(1.0, 10.0).reshape(3, 3),),
        (0,),
        {0: np.array([[2.0, 4.0, 6.0], [0.0, 20.0, 24.0], [0.0, 0.0, 54.0]])},
    ),
    Case(
        "value_kept_across_loop",
        "NVIDIA/warp#1694",
        "value computed before a dynamic loop and used after it loses its adjoint",
        value_kept_across_loop,
        lambda: (A(1.2, -0.5), A(0.3, 1.1, -0.7, 5.0), 3),
        (0, 1),
        {
            0: (0.3**2 + 1.1**2 + 0.7**2 + math.cos(-0.6)) * A(-0.5, 1.2),
            1: -0.6 * 2.0 * A(0.3, 1.1, -0.7, 0.0),
        },
    ),
    Case(
        "guarded_sqrt",
        "jax-ml/jax#5798; HIPS/autograd#151",
        "NaN from sqrt at 0 although the branch with the sqrt is not taken",
        guarded_sqrt,
        lambda: (A(0.0, 4.0, 0.25),),
        (0,),
        {0: A(1.0, 0.25, 1.0)},
    ),
    Case(
        "gather_repeated",
        "pytorch/pytorch#1631; invenia/Nabla.jl#139",
        "fancy indexing with a repeated index: only one of the contributions is kept",
        gather_repeated,
        lambda: (A(2.0, -1.0, 3.0), np.array([0, 2, 0, 0]), A(1.0, 2.0, 3.0, 4.0)),
        (0, 2),
        {0: A(2 * 2.0 * 8.0, 0.0, 2 * 3.0 * 2.0), 2: A(4.0, 9.0, 4.0, 4.0)},
    ),
    Case(
        "float32_shadow",
        "denizyuret/AutoGrad.jl#69 and #32; FluxML/Zygote.jl#826",
        "a float64 constant turns the gradient of a float32 array into float64",
        float32_shadow,
        lambda: (_X3.astype(np.float32),),
        (0,),
        {0: (0.2 * np.cos(_X3)).astype(np.float32)},
        rtol=2e-6,
        atol=1e-7,
        fd_args=lambda: (_X3.copy(),),
        note="the shadow must have dtype float32",
    ),
    Case(
        "broadcast_inplace",
        "pytorch/pytorch#1787; deeplearning4j/nd4j#2424",
        "gradient of a broadcast operand is not summed back to the operand's shape",
        broadcast_inplace,
        lambda: (np.arange(6.0).reshape(2, 3) * 0.5, A(0.1, -0.2, 0.3), A(2.0, -1.5)),
        (0, 1, 2),
        {
            0: np.array(
                [[0.8, 2.4, 10.4], [7.200000000000001, 8.100000000000001, 12.599999999999998]]
            ),
            1: np.array([8.000000000000002, 10.500000000000002, 23.0]),
            2: np.array([7.160000000000001, -40.92]),
        },
        how="analytic (evaluated with numpy)",
    ),
    Case(
        "prange_fanout",
        "EnzymeAD/Enzyme.jl#3378",
        "a scalar read by all iterations of a parallel loop: its adjoint is a race",
        prange_fanout,
        lambda: (np.linspace(0.0, 1.0, 2000), 1.5),
        (0, 1),
        {0: np.linspace(-1.0, 2.0, 2000), 1: 2 * 1.5 * float(np.sum(np.linspace(-1.0, 2.0, 2000)))},
        kind="parallel",
        cotangent=None,
        seeds={0: np.linspace(-1.0, 2.0, 2000)},
        jit={"parallel": True},
        fd_sample=5,
        note="repeat some 20 times: the fault is a race",
    ),
]


def get_leaf(args, key):
    if not isinstance(key, tuple):
        return args[key]
    obj = args[key[0]]
    for name in key[1:]:
        obj = getattr(obj, name)
    return obj


def bump(args, key, idx, h):
    """args with h added to one entry of a leaf (in place for arrays and struct fields)."""
    v = get_leaf(args, key)
    if isinstance(v, np.ndarray):
        v[idx] += h
        return args
    if not isinstance(key, tuple):
        return args[:key] + (v + h,) + args[key + 1 :]
    owner = args[key[0]]
    if hasattr(owner, "_replace"):
        return args[: key[0]] + (owner._replace(**{key[1]: v + h}),) + args[key[0] + 1 :]
    setattr(owner, key[1], v + h)
    return args


def inner(ct, out):
    if ct is None:
        return 0.0
    if isinstance(ct, tuple):
        return sum(inner(c, o) for c, o in zip(ct, out, strict=True))
    return float(np.sum(np.asarray(ct) * np.asarray(out)))


def seeded_loss(case, run, args):
    out = run(*args)
    return inner(case.cotangent, out) + sum(
        float(np.sum(np.asarray(s) * np.asarray(get_leaf(args, k)))) for k, s in case.seeds.items()
    )


def fd_entry(loss, build, key, idx, x):
    """Central differences with Richardson extrapolation; the step is chosen by a study."""
    scale = max(1.0, abs(x)) if np.isfinite(x) else 1.0
    ests = []
    for h in (2e-2, 6e-3, 2e-3, 6e-4, 2e-4, 6e-5):
        h *= scale
        d = [
            (loss(bump(build(), key, idx, e)) - loss(bump(build(), key, idx, -e))) / (2 * e)
            for e in (h, h / 2)
        ]
        ests.append((4 * d[1] - d[0]) / 3)
    gaps = [abs(p - q) for p, q in zip(ests, ests[1:], strict=False)]
    return ests[int(np.argmin(gaps)) + 1]


def fd_compare(loss, build, key, expected, tol, sample=None):
    v = get_leaf(build(), key)
    exp = np.asarray(expected, dtype=float)
    if np.shape(v) != exp.shape:
        return f"{key}: shape {np.shape(v)} but expected has {exp.shape}"
    ids = list(np.ndindex(np.shape(v)))
    if sample is not None and len(ids) > sample:
        ids = [ids[i] for i in np.random.default_rng(0).choice(len(ids), sample, replace=False)]
    scale = 1.0 + (np.max(np.abs(exp)) if exp.size else 0.0)
    for idx in ids:
        g = fd_entry(loss, build, key, idx, float(np.asarray(v)[idx]))
        if not abs(g - exp[idx]) <= tol * scale:
            return f"{key}{list(idx)}: finite differences {g!r}, stored {exp[idx]!r}"
    return None


def same(a, b, rtol, atol):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b, rtol=rtol, atol=atol)


_compiled = {}


def compile_case(case):
    return _compiled.setdefault(case.id, njit(**case.jit)(case.fn))


def check(case):
    """None, or what is wrong with the case."""
    run = compile_case(case)
    if case.kind == "error" and case.error_at == "forward":
        args = case.args()
        try:
            run(*args)
        except Exception as e:
            msg = f"{type(e).__name__}: {e}"
            if msg != case.error:
                return f"raises {msg!r}"
        else:
            return "does not raise"
        fresh = case.args()
        return (
            None
            if all(same(get_leaf(args, k), get_leaf(fresh, k), 0, 0) for k in case.unchanged)
            else "argument altered"
        )
    if case.kind == "script":
        env, got = {}, set()
        for step in case.script:
            if step[0] == "args":
                env[step[1]] = step[2](env)
            elif step[0] == "forward":
                run(*env[step[2]])
            elif step[0] == "check":
                loss_fn, build, key = case.refs[step[1], step[2]]
                got.add((step[1], step[2]))
                bad = fd_compare(
                    lambda a: float(loss_fn(run, *a)), lambda: build({}), key, step[3], case.fd_tol
                )
                if bad:
                    return f"shadow {step[1]}: {bad}"
        return None if got == set(case.refs) else "refs and checks differ"
    args = case.args()
    out = run(*args)
    if hasattr(run, "nopython_signatures") and not run.nopython_signatures:
        return "not compiled in nopython mode"
    if case.value is not None and not same(out, case.value, 1e-12, 1e-12):
        return f"value {out!r}, stored {case.value!r}"
    for k, v in case.post.items():
        if not same(get_leaf(args, k), v, 1e-12, 1e-12):
            return f"post {k}: {get_leaf(args, k)!r}"
    fresh = case.args()
    for k in case.unchanged:
        if not same(get_leaf(args, k), get_leaf(fresh, k), 0, 0):
            return f"{k} altered by the forward pass"
    for group in case.aliases:
        for k in group[1:]:
            if not np.shares_memory(get_leaf(args, group[0]), get_leaf(args, k)):
                return f"{group} do not share memory"
    if case.kind == "error":
        if not case.expected:
            return None
    elif set(case.expected) != set(case.wrt):
        return "expected does not cover wrt"
    for k, e in case.expected.items():
        leaf = get_leaf(args, k)
        if isinstance(leaf, np.ndarray) and getattr(e, "dtype", leaf.dtype) != leaf.dtype:
            return f"{k}: dtype of expected is {e.dtype}"
        bad = fd_compare(
            lambda a: seeded_loss(case, run, a),
            case.fd_args or case.args,
            k,
            e,
            max(case.fd_tol, 4 * case.rtol if case.rtol > 1e-7 else 0.0),
            case.fd_sample,
        )
        if bad:
            return bad
    if case.accept is not None and not case.accept(case.expected):
        return "accept() refuses the example"
    return None


def main():
    failed = 0
    for c in CASES:
        bad = check(c)
        print(
            f"{'ok  ' if not bad else 'FAIL'} {c.kind:8s} {c.id}" + (f"  -- {bad}" if bad else ""),
            flush=True,
        )
        failed += bool(bad)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
