"""A small call of every NumPy function that Numba has, as text; the README's table says what becomes of it.

    "sort": "np.sort(v)"        several calls, one a line, are several forms of the function

The letters are arguments: `ARGUMENTS` makes them for a dtype.  numpy_status.py goes through the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _numbers(seed: int, *shape: int, dtype: Any) -> Any:
    """Random numbers between 0.3 and 2.3 in size, no two of them close to each other, of both signs."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    sizes = rng.permutation(np.linspace(0.3 + 0.01 * seed, 2.3, count)) * rng.choice(
        [-1.0, 1.0], count
    )
    made = sizes.reshape(shape)
    if np.issubdtype(dtype, np.complexfloating):
        made = made + 1j * rng.permutation(np.linspace(-1.9, 1.7, count)).reshape(shape)
    return made.astype(dtype)


def _definite(n: int, dtype: Any) -> Any:
    a = _numbers(
        5, n, n, dtype=np.complex128 if np.issubdtype(dtype, np.complexfloating) else float
    )
    return (a @ a.conj().T + np.diag(np.arange(1.0, n + 1))).astype(dtype)


ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "v": lambda t: _numbers(1, 6, dtype=t),  # vectors
    "w": lambda t: _numbers(2, 6, dtype=t),
    "y": lambda t: _numbers(3, 3, dtype=t),
    "u": lambda t: (np.abs(_numbers(4, 6, dtype=t)) / 3).astype(t),  # in (0, 1)
    "g": lambda t: np.linspace(-2.0, 3.0, 6).astype(t),  # growing
    "m": lambda t: _numbers(6, 3, 4, dtype=t),  # matrices
    "n": lambda t: _numbers(7, 4, 3, dtype=t),
    "s": lambda t: (_numbers(8, 3, 3, dtype=t) + 2 * np.eye(3)).astype(t),
    "p": lambda t: _definite(3, t),  # symmetric and positive definite
    "c": lambda t: _numbers(9, 2, 3, 4, dtype=t),
    "x": lambda t: np.dtype(t).type(0.7),  # numbers
    "z": lambda t: np.dtype(t).type(-1.3),
    "h": lambda t: np.array([1.5, np.nan, -0.5, 2.0, np.nan, 0.25]).astype(t),  # with holes
    "i": lambda t: np.array([3, 0, 3, 5]),
    "b": lambda t: np.array([True, False, True, True, False, False]),
    "k": lambda t: 2,
}

NUMPY: dict[str, dict[str, str]] = {
    "elementwise, of one argument": {
        name: f"np.{name}({arg})"
        for arg, names in {
            "v": "absolute abs fabs negative positive exp exp2 expm1 sin cos tan sinh cosh tanh "
            "arctan arcsinh square reciprocal cbrt sign floor ceil trunc rint conjugate conj real "
            "imag angle isnan isinf isfinite signbit spacing logical_not isreal iscomplex isneginf "
            "isposinf sinc nan_to_num deg2rad rad2deg degrees radians",
            "u": "log log2 log10 log1p sqrt arcsin arccos arctanh",
            "(u + 1.5)": "arccosh",
        }.items()
        for name in names.split()
    }
    | {"round": "np.round(v)\nnp.round(v, 2)", "around": "np.around(v)", "invert": "np.invert(i)",
       "bitwise_not": "np.bitwise_not(i)", "iscomplexobj": "np.iscomplexobj(v)",
       "isrealobj": "np.isrealobj(v)", "isscalar": "np.isscalar(x)"},
    "elementwise, of two arguments": {
        name: f"np.{name}({arg})"
        for arg, names in {
            "v, w": "add subtract multiply divide true_divide maximum minimum fmax fmin hypot "
            "arctan2 logaddexp logaddexp2 fmod mod remainder floor_divide copysign nextafter "
            "less less_equal greater greater_equal equal not_equal logical_and logical_or "
            "logical_xor isclose",
            "u, w": "power float_power",
            "i, i": "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm",
            "v, 3": "ldexp",
        }.items()
        for name in names.split()
    }
    | {"clip": "np.clip(v, x, 2.0)\nnp.clip(v, None, x)\nv.clip(-1.0, 1.0)",
       "divmod": "np.divmod(v, w)", "where": "np.where(b, v, w)\nnp.where(b)",
       "select": "np.select([b, i[:1] > 0], [v * w, w], x)", "allclose": "np.allclose(v, w)",
       "array_equal": "np.array_equal(v, w)", "interp": "np.interp(v, g, w)\nnp.interp(x, g, w)",
       "unwrap": "np.unwrap(2 * v)", "extract": "np.extract(b, v)"},
    "reductions": {
        "sum": "np.sum(v)\nnp.sum(m * x, axis=0)\nnp.sum(m, axis=0)\nm.sum(1)\nnp.sum(c)",
        "prod": "np.prod(v)\nm.prod()",
        "mean": "np.mean(v)\nm.mean()",
        "var": "np.var(v)\nm.var()",
        "std": "np.std(v)\nm.std()",
        "min": "np.min(v)\nm.min()", "amin": "np.amin(v)",
        "max": "np.max(v)\nm.max()", "amax": "np.amax(v)",
        "ptp": "np.ptp(v)",
        "argmin": "np.argmin(v)\nm.argmin()\nnp.argmin(m, axis=0)",
        "argmax": "np.argmax(v)\nm.argmax()\nnp.argmax(m, axis=1)",
        "all": "np.all(v)", "any": "np.any(v)\nm.any()", "count_nonzero": "np.count_nonzero(v)",
        "median": "np.median(v)\nnp.median(m)",
        "percentile": "np.percentile(v, 30)\nnp.percentile(v, (30, 80))",
        "quantile": "np.quantile(v, 0.3)\nnp.quantile(v, np.array([0.3, 0.8]))",
        "average": "np.average(v)\nnp.average(v, weights=u)",
        "nansum": "np.nansum(h)", "nanprod": "np.nanprod(h)", "nanmean": "np.nanmean(h)",
        "nanvar": "np.nanvar(h)", "nanstd": "np.nanstd(h)", "nanmin": "np.nanmin(h)",
        "nanmax": "np.nanmax(h)", "nanmedian": "np.nanmedian(h)",
        "nanpercentile": "np.nanpercentile(h, 30)", "nanquantile": "np.nanquantile(h, 0.3)",
        "nanargmin": "np.nanargmin(h)", "nanargmax": "np.nanargmax(h)",
        "nancumsum": "np.nancumsum(h)", "nancumprod": "np.nancumprod(h)",
        "cumsum": "np.cumsum(v)\nnp.cumsum(m, axis=1)\nm.cumsum()",
        "cumprod": "np.cumprod(v)\nv.cumprod()\nnp.cumprod(m)",
        "trapz": "np.trapz(v, g)\nnp.trapz(v)", "trapezoid": "np.trapezoid(v, g)\nnp.trapezoid(v)",
        "cov": "np.cov(v, w)\nnp.cov(m)", "corrcoef": "np.corrcoef(v, w)",
        "histogram": "np.histogram(v, 4)", "bincount": "np.bincount(i)\nnp.bincount(i, weights=v[:4])",
    },
    "linear algebra": {
        "dot": "np.dot(v, w)\nnp.dot(m, n)\nm.dot(v[:4])\nnp.dot(v[:3], m)\nv.dot(w)",
        "matmul": "m @ n\nm @ v[:4]\nv @ w",
        "vdot": "np.vdot(v, w)", "outer": "np.outer(v, y)", "kron": "np.kron(s, m)",
        "trace": "np.trace(s)\nnp.trace(m, 1)",
        "cross": "np.cross(y, w[:3])",
        "linalg.solve": "np.linalg.solve(s, y)\nnp.linalg.solve(s, m)",
        "linalg.inv": "np.linalg.inv(s)", "linalg.det": "np.linalg.det(s)",
        "linalg.slogdet": "np.linalg.slogdet(s)[1]\nnp.linalg.slogdet(s)[0]",
        "linalg.cholesky": "np.linalg.cholesky(p)",
        "linalg.eigh": "np.linalg.eigh(p)[0]\nnp.abs(np.linalg.eigh(p)[1]) ** 2",
        "linalg.eigvalsh": "np.linalg.eigvalsh(p)",
        "linalg.eig": "np.linalg.eig(p)[0]", "linalg.eigvals": "np.linalg.eigvals(p)",
        "linalg.qr": "np.linalg.qr(n)[0]\nnp.linalg.qr(n)[1]\nnp.linalg.qr(s)[1]",
        "linalg.svd": "np.linalg.svd(n)[1]\nnp.abs(np.linalg.svd(s)[0]) ** 2\n"
        "np.abs(np.linalg.svd(n, 0)[2]) ** 2",
        "linalg.norm": "np.linalg.norm(v)\nnp.linalg.norm(v, 1)\nnp.linalg.norm(v, np.inf)\n"
        "np.linalg.norm(v, 3)\nnp.linalg.norm(m)\nnp.linalg.norm(m, 2)\nnp.linalg.norm(m, 1)",
        "linalg.lstsq": "np.linalg.lstsq(n, w[:4])[0]\nnp.linalg.lstsq(n, s[0, 0] * n)[1]",
        "linalg.pinv": "np.linalg.pinv(n)\nnp.linalg.pinv(m)",
        "linalg.cond": "np.linalg.cond(s)\nnp.linalg.cond(s, 1)",
        "linalg.matrix_power": "np.linalg.matrix_power(s, 3)\nnp.linalg.matrix_power(s, -2)",
        "linalg.matrix_rank": "np.linalg.matrix_rank(s)",
    },
    "shape": {
        "reshape": "np.reshape(m, (4, 3))\nm.reshape(12)", "ravel": "np.ravel(m)\nm.ravel()",
        "flatten": "m.flatten()",
        "transpose": "np.transpose(m)\nm.transpose()\nm.T\nnp.transpose(c, (1, 0, 2))",
        "swapaxes": "np.swapaxes(c, 0, 2)", "moveaxis": "np.moveaxis(c, 0, 2)",
        "expand_dims": "np.expand_dims(v, 0)",
        "broadcast_to": "np.broadcast_to(v, (2, 6))", "broadcast_arrays": "np.broadcast_arrays(v, x)[0]",
        "broadcast_shapes": "np.broadcast_shapes((2, 1), (3,))",
        "concatenate": "np.concatenate((v, w))\nnp.concatenate((m, n.T), axis=1)",
        "stack": "np.stack((v, w))", "hstack": "np.hstack((v, w))", "vstack": "np.vstack((v, w))",
        "dstack": "np.dstack((v, w))", "column_stack": "np.column_stack((v, w))",
        "row_stack": "np.row_stack((v, w))", "append": "np.append(v, w)\nnp.append(v, x)",
        "split": "np.split(v, 2)[1]", "array_split": "np.array_split(v, 4)[0]",
        "hsplit": "np.hsplit(m, 2)[1]", "vsplit": "np.vsplit(n, 2)[1]", "dsplit": "np.dsplit(c, 2)[1]",
        "repeat": "np.repeat(v, 2)\nv.repeat(2)\nnp.repeat(v[:4], i)", "roll": "np.roll(v, 2)",
        "resize": "np.resize(v, (2, 4))",
        "flip": "np.flip(m)", "flipud": "np.flipud(m)", "fliplr": "np.fliplr(m)", "rot90": "np.rot90(m)",
        "tril": "np.tril(s)\nnp.tril(m, 1)", "triu": "np.triu(s)\nnp.triu(m, -1)",
        "diag": "np.diag(v)\nnp.diag(s)\nnp.diag(m, 1)", "diagflat": "np.diagflat(y)",
        "fill_diagonal": "np.fill_diagonal(s, x)", "diff": "np.diff(v)\nnp.diff(v, 2)\nnp.diff(m)",
        "ediff1d": "np.ediff1d(v)", "atleast_1d": "np.atleast_1d(v)",
        "atleast_2d": "np.atleast_2d(v)", "atleast_3d": "np.atleast_3d(v)",
        "delete": "np.delete(v, 2)", "insert": "np.insert(v, 2, x)", "trim_zeros": "np.trim_zeros(v)",
        "ascontiguousarray": "np.ascontiguousarray(m)", "asfortranarray": "np.asfortranarray(m)",
        "asarray": "np.asarray(v)", "asarray_chkfinite": "np.asarray_chkfinite(v)",
        "copy": "np.copy(v)\nv.copy()", "astype": "v.astype(np.complex128)",
        "lib.stride_tricks.sliding_window_view": "np.lib.stride_tricks.sliding_window_view(v, 3)",
        "lib.stride_tricks.as_strided": "np.lib.stride_tricks.as_strided(v, (2, 3), (24, 8))",
        "vander": "np.vander(y, 3)", "shape": "np.shape(m)", "size": "np.size(m)",
    },
    "picking and ordering": {
        "take": "np.take(v, i)\nv.take(i)\nnp.take(v, 2)\nnp.take(n, i[1:2], 1)",
        "take_along_axis": "np.take_along_axis(v, i, 0)",
        "nonzero": "np.nonzero(v)[0]", "argwhere": "np.argwhere(v)",
        "flatnonzero": "np.flatnonzero(v)", "searchsorted": "np.searchsorted(g, v)",
        "digitize": "np.digitize(v, g)", "sort": "np.sort(v)", "argsort": "np.argsort(v)\nv.argsort()",
        "partition": "np.partition(v, 2)", "argpartition": "np.argpartition(v, 2)",
        "unique": "np.unique(v)", "union1d": "np.union1d(v, u)", "intersect1d": "np.intersect1d(v, u)",
        "setdiff1d": "np.setdiff1d(v, u)", "setxor1d": "np.setxor1d(v, u)", "isin": "np.isin(v, w)",
        "tril_indices": "np.tril_indices(3)[0]", "triu_indices": "np.triu_indices(3)[0]",
        "tril_indices_from": "np.tril_indices_from(s)[0]", "triu_indices_from": "np.triu_indices_from(s)[0]",
    },
    "signals and polynomials": {
        "convolve": "np.convolve(v, y)\nnp.convolve(v, y, 'same')\nnp.convolve(v, y, 'valid')",
        "correlate": "np.correlate(v, y)\nnp.correlate(v, y, 'full')",
        "roots": "np.roots(np.array([1.0, 3.0 * z, x]))",
        "polynomial.polynomial.polyval": "np.polynomial.polynomial.polyval(v, y)",
        "polynomial.polynomial.polyadd": "np.polynomial.polynomial.polyadd(v, y)",
        "polynomial.polynomial.polysub": "np.polynomial.polynomial.polysub(v, y)",
        "polynomial.polynomial.polymul": "np.polynomial.polynomial.polymul(v, y)",
        "polynomial.polynomial.polydiv": "np.polynomial.polynomial.polydiv(v, y)[0]",
        "polynomial.polynomial.polyint": "np.polynomial.polynomial.polyint(v)",
        "kaiser": "np.kaiser(4, x)", "bartlett": "np.bartlett(4)", "blackman": "np.blackman(4)",
        "hamming": "np.hamming(4)", "hanning": "np.hanning(4)",
    },
    "new arrays": {
        "zeros": "np.zeros(3) + x", "ones": "np.ones(3) * x", "full": "np.full(3, x)",
        "zeros_like": "np.zeros_like(v) + v", "ones_like": "np.ones_like(v) * v",
        "full_like": "np.full_like(v, x)", "array": "np.array([x, z])\nnp.array([[x, z], [z, x]])",
        "arange": "np.arange(4) * x\nnp.arange(x, 4.0)", "linspace": "np.linspace(x, 4.0, 5)",
        "logspace": "np.logspace(x, 2.0, 4)", "geomspace": "np.geomspace(x, 4.0, 4)",
        "eye": "np.eye(3) * x\nnp.eye(3, 4, 1) * x", "identity": "np.identity(3) * x",
        "tri": "np.tri(3, 4, 1) * x",
        "indices": "np.indices((2, 3))",
    },
}  # fmt: skip

# Functions of NumPy that Numba has and that are in no part of the table.
OTHER: dict[str, str] = {
    "isnat": "of dates",
    "empty": "makes memory",
    "empty_like": "makes memory",
    "frombuffer": "reads bytes",
    "polynomial.polyutils.trimseq": "a helper of the polynomials",
    "polynomial.polyutils.as_series": "a helper of the polynomials",
}
