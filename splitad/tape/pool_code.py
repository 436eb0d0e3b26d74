"""The machine code of the pool: what pool.py says, written with llvmlite's builder.

`emit(module, state_address, madvise)` adds the functions to an LLVM module, which must be linked with
splitad_c_malloc, _free, _memcpy and, where `madvise` is set, _madvise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

MAX_BLOCKS = 16
MAX_POOLED = 256 << 20
MIN_POOLED = 64 << 10  # smaller blocks are not worth a place
SLACK = 4  # a pooled block may be so many times larger than what was asked for
ALIGN = 64
HUGE = 4 << 20  # from here on, ask Linux for large pages
TRIES = 100

# The state: so many 64-bit integers, then the addresses of the pooled blocks.
LOCK, LIVE_TAPES, LIVE_BYTES, POOLED_BYTES, COUNT, BLOCKS = range(6)
STATE_WORDS = BLOCKS + MAX_BLOCKS

_i1, _i32, _i64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_void = ir.VoidType()


class _Emit:
    """The few words of C that the functions below are written in."""

    state_address = 0  # of this process

    def __init__(self, module: ir.Module, name: str, result: ir.Type, args: int) -> None:
        self.fn = ir.Function(module, ir.FunctionType(result, [_i64] * args), name=name)
        self.fn.attributes.add("nounwind")
        self.b = ir.IRBuilder(self.fn.append_basic_block("entry"))

    def const(self, value: int) -> ir.Constant:
        return ir.Constant(_i64, value)

    def at(self, address: ir.Value, byte_offset: int = 0) -> ir.Value:
        where = self.b.add(address, self.const(byte_offset)) if byte_offset else address
        return self.b.inttoptr(where, _i64.as_pointer())

    def load(self, address: ir.Value, byte_offset: int = 0) -> ir.Value:
        return self.b.load(self.at(address, byte_offset))

    def store(self, value: ir.Value | int, address: ir.Value, byte_offset: int = 0) -> None:
        value = self.const(value) if isinstance(value, int) else value
        self.b.store(value, self.at(address, byte_offset))

    def state(self, which: int) -> ir.Value:
        return self.const(self.state_address + 8 * which)

    def slot(self, index: ir.Value) -> ir.Value:
        return self.b.add(self.state(BLOCKS), self.b.shl(index, self.const(3)))

    def count(self, which: int, delta: ir.Value | int, sign: str = "add") -> None:
        delta = self.const(delta) if isinstance(delta, int) else delta
        self.b.atomic_rmw(sign, self.at(self.state(which)), delta, "monotonic")

    def less(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.icmp_signed("<", left, right)

    def minimum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.select(self.less(left, right), left, right)

    def maximum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.select(self.less(left, right), right, left)

    @contextmanager
    def loop(self, start: ir.Value, stop: ir.Value) -> Iterator[ir.Value]:
        """``for (i = start; i < stop; i++)``"""
        before = self.b.block
        head, body = self.fn.append_basic_block("head"), self.fn.append_basic_block("body")
        after = self.fn.append_basic_block("after")
        self.b.branch(head)
        self.b.position_at_end(head)
        i = self.b.phi(_i64)
        i.add_incoming(start, before)
        self.b.cbranch(self.less(i, stop), body, after)
        self.b.position_at_end(body)
        yield i
        i.add_incoming(self.b.add(i, self.const(1)), self.b.block)
        self.b.branch(head)
        self.b.position_at_end(after)

    @contextmanager
    def repeat_while(self, test: Callable[[], ir.Value]) -> Iterator[None]:
        """``while (test()) { ... }``"""
        head, body = self.fn.append_basic_block("head"), self.fn.append_basic_block("body")
        after = self.fn.append_basic_block("after")
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(test(), body, after)
        self.b.position_at_end(body)
        yield
        self.b.branch(head)
        self.b.position_at_end(after)

    def try_lock(self) -> ir.Value:
        """Whether the lock was taken."""
        got = self.b.alloca(_i1)
        self.b.store(_i1(0), got)
        left = self.b.alloca(_i64)
        self.b.store(self.const(TRIES), left)

        def again() -> ir.Value:
            more = self.b.icmp_signed(">", self.b.load(left), self.const(0))
            return self.b.and_(more, self.b.not_(self.b.load(got)))

        with self.repeat_while(again):
            where = self.at(self.state(LOCK))
            pair = self.b.cmpxchg(where, self.const(0), self.const(1), "acquire", "monotonic")
            self.b.store(self.b.extract_value(pair, 1), got)
            self.b.store(self.b.sub(self.b.load(left), self.const(1)), left)
        return self.b.load(got)

    def unlock(self) -> None:
        self.b.store_atomic(self.const(0), self.at(self.state(LOCK)), "release", 8)


def _emit_acquire(
    module: ir.Module, malloc: ir.Function, madvise: ir.Function | None
) -> ir.Function:
    """acquire(size) -> address of a block of at least `size` bytes, or 0."""
    e = _Emit(module, "splitad_block_acquire", _i64, 1)
    b = e.b
    rounded = b.add(b.or_(e.fn.args[0], e.const(ALIGN - 1)), e.const(1))
    size = b.select(
        b.icmp_signed("==", b.and_(e.fn.args[0], e.const(ALIGN - 1)), e.const(0)),
        e.fn.args[0],
        rounded,
    )
    size = e.maximum(size, e.const(ALIGN))
    best, best_size = b.alloca(_i64), b.alloca(_i64)
    with b.if_then(b.icmp_signed(">=", size, e.const(MIN_POOLED))), b.if_then(e.try_lock()):
        b.store(e.const(-1), best)
        b.store(b.add(b.mul(size, e.const(SLACK)), e.const(1)), best_size)
        with e.loop(e.const(0), e.load(e.state(COUNT))) as i:
            has = e.load(e.load(e.slot(i)), -8)
            fits = b.and_(b.icmp_signed(">=", has, size), e.less(has, b.load(best_size)))
            with b.if_then(fits):
                b.store(i, best)
                b.store(has, best_size)
        found = b.icmp_signed(">=", b.load(best), e.const(0))
        with b.if_then(found):
            block = e.load(e.slot(b.load(best)))
            last = b.sub(e.load(e.state(COUNT)), e.const(1))
            with e.loop(b.load(best), last) as i:
                e.store(e.load(e.slot(b.add(i, e.const(1)))), e.slot(i))
            e.store(last, e.state(COUNT))
            has = e.load(block, -8)
            e.count(POOLED_BYTES, has, "sub")
            e.unlock()
            e.count(LIVE_BYTES, has)
            b.ret(block)
        e.unlock()
    raw = b.call(malloc, [b.add(size, e.const(2 * ALIGN))])
    with b.if_then(b.icmp_signed("==", raw, e.const(0))):
        b.ret(e.const(0))
    block = b.and_(b.add(raw, e.const(2 * ALIGN - 1)), e.const(-ALIGN))
    e.store(raw, block, -16)
    e.store(size, block, -8)
    if madvise is not None:
        with b.if_then(b.icmp_signed(">=", size, e.const(HUGE))):
            page = b.and_(b.add(block, e.const(4095)), e.const(-4096))
            length = b.and_(b.sub(b.add(block, size), page), e.const(-4096))
            b.call(madvise, [page, length, _i32(14)])  # MADV_HUGEPAGE; a refusal does no harm
    e.count(LIVE_BYTES, size)
    b.ret(block)
    return e.fn


def _emit_give_back(module: ir.Module, free: ir.Function) -> ir.Function:
    """give_back(block): to the pool, or to free()."""
    e = _Emit(module, "splitad_block_release", _void, 1)
    b, block = e.b, e.fn.args[0]
    size = e.load(block, -8)
    e.count(LIVE_BYTES, size, "sub")
    wanted = b.and_(
        b.icmp_signed(">=", size, e.const(MIN_POOLED)),
        b.icmp_signed("<=", size, e.const(MAX_POOLED)),
    )
    with b.if_then(wanted), b.if_then(e.try_lock()):

        def too_full() -> ir.Value:
            many = b.icmp_signed(">=", e.load(e.state(COUNT)), e.const(MAX_BLOCKS))
            total = b.add(e.load(e.state(POOLED_BYTES)), size)
            return b.or_(many, b.icmp_signed(">", total, e.const(MAX_POOLED)))

        with e.repeat_while(too_full):
            oldest = e.load(e.slot(e.const(0)))
            last = b.sub(e.load(e.state(COUNT)), e.const(1))
            with e.loop(e.const(0), last) as i:
                e.store(e.load(e.slot(b.add(i, e.const(1)))), e.slot(i))
            e.store(last, e.state(COUNT))
            e.count(POOLED_BYTES, e.load(oldest, -8), "sub")
            b.call(free, [e.load(oldest, -16)])
        count = e.load(e.state(COUNT))
        e.store(block, e.slot(count))
        e.store(b.add(count, e.const(1)), e.state(COUNT))
        e.count(POOLED_BYTES, size)
        e.unlock()
        b.ret_void()
    b.call(free, [e.load(block, -16)])
    b.ret_void()
    return e.fn


def _emit_drain(module: ir.Module, free: ir.Function) -> None:
    e = _Emit(module, "splitad_pool_drain", _void, 0)
    with e.b.if_then(e.try_lock()):
        with e.loop(e.const(0), e.load(e.state(COUNT))) as i:
            block = e.load(e.slot(i))
            e.count(POOLED_BYTES, e.load(block, -8), "sub")
            e.b.call(free, [e.load(block, -16)])
        e.store(0, e.state(COUNT))
        e.unlock()
    e.b.ret_void()


# The handle: six 64-bit integers.
_ADDRESS, _CAPACITY, _USED, _LIMIT, _KEPT, _KEPT_BYTES = range(0, 48, 8)


def _emit_init(module: ir.Module, acquire: ir.Function) -> None:
    e = _Emit(module, "splitad_tape_init", _void, 3)
    b = e.b
    handle, capacity, limit = e.fn.args
    for at in (_ADDRESS, _CAPACITY, _USED, _KEPT, _KEPT_BYTES):
        e.store(0, handle, at)
    e.store(limit, handle, _LIMIT)
    e.count(LIVE_TAPES, 1)
    wanted = e.minimum(capacity, limit)
    with b.if_then(b.icmp_signed(">", wanted, e.const(0))):
        block = b.call(acquire, [wanted])
        with b.if_then(b.icmp_signed("!=", block, e.const(0))):
            e.store(block, handle, _ADDRESS)
            e.store(e.minimum(e.load(block, -8), limit), handle, _CAPACITY)
    b.ret_void()


def _emit_release(module: ir.Module, give_back: ir.Function) -> ir.Function:
    e = _Emit(module, "splitad_tape_release", _void, 1)
    b, handle = e.b, e.fn.args[0]
    block = e.load(handle, _ADDRESS)
    with b.if_then(b.icmp_signed("!=", block, e.const(0))):
        for at in (_ADDRESS, _CAPACITY, _USED):
            e.store(0, handle, at)
        b.call(give_back, [block])
    b.ret_void()
    return e.fn


def _emit_dtor(module: ir.Module, release: ir.Function, drop_kept: ir.Function) -> None:
    e = _Emit(module, "splitad_tape_dtor", _void, 3)
    e.b.call(release, [e.fn.args[0]])
    kept = e.load(e.fn.args[0], _KEPT)
    with e.b.if_then(e.b.icmp_signed("!=", kept, e.const(0))):
        e.b.call(drop_kept, [kept])
    e.count(LIVE_TAPES, 1, "sub")
    e.b.ret_void()


def _emit_swap(
    e: _Emit, used: ir.Value, size: ir.Value, acquire: ir.Function, *others: ir.Function
) -> ir.Value:
    """Put the handle's contents into a new block of `size`; the block is 0 where there is no memory."""
    give_back, memcpy = others
    b, handle = e.b, e.fn.args[0]
    block = b.call(acquire, [size])
    with b.if_then(b.icmp_signed("!=", block, e.const(0))):
        old = e.load(handle, _ADDRESS)
        with b.if_then(b.icmp_signed("!=", old, e.const(0))):
            b.call(memcpy, [block, old, used])
            b.call(give_back, [old])
        e.store(block, handle, _ADDRESS)
        e.store(e.minimum(e.load(block, -8), e.load(handle, _LIMIT)), handle, _CAPACITY)
    return block


def _emit_grow(module: ir.Module, *blocks: ir.Function) -> None:
    e = _Emit(module, "splitad_tape_grow", _i32, 3)
    b = e.b
    handle, used, total = e.fn.args
    with b.if_then(b.icmp_signed("<=", total, e.load(handle, _CAPACITY))):
        b.ret(_i32(1))
    limit = e.load(handle, _LIMIT)
    with b.if_then(b.icmp_signed(">", total, limit)):
        b.ret(_i32(0))
    doubled = b.mul(e.load(handle, _CAPACITY), e.const(2))
    block = _emit_swap(e, used, e.minimum(e.maximum(total, doubled), limit), *blocks)
    b.ret(b.select(b.icmp_signed("==", block, e.const(0)), _i32(-1), _i32(1)))


def _emit_trim(module: ir.Module, release: ir.Function, *blocks: ir.Function) -> None:
    e = _Emit(module, "splitad_tape_trim", _void, 1)
    b, handle = e.b, e.fn.args[0]
    used, capacity = e.load(handle, _USED), e.load(handle, _CAPACITY)
    with b.if_then(b.icmp_signed("<=", used, e.const(0))):
        b.call(release, [handle])
        b.ret_void()
    spare = b.sub(capacity, used)
    half_empty = b.icmp_signed(">", spare, b.add(used, e.const(1024)))
    with b.if_then(half_empty):
        _emit_swap(e, used, used, *blocks)
    b.ret_void()


def emit(module: ir.Module, state_address: int, with_madvise: bool) -> None:
    """Add the pool's functions to a module."""
    _Emit.state_address = state_address

    def c_function(name: str, result: ir.Type, args: list[ir.Type]) -> ir.Function:
        return ir.Function(module, ir.FunctionType(result, args), name="splitad_c_" + name)

    malloc = c_function("malloc", _i64, [_i64])
    free = c_function("free", _void, [_i64])
    drop_kept = c_function("drop_kept", _void, [_i64])  # a reference to a block of Numba's runtime
    memcpy = c_function("memcpy", _i64, [_i64, _i64, _i64])
    madvise = c_function("madvise", _i32, [_i64, _i64, _i32]) if with_madvise else None
    acquire = _emit_acquire(module, malloc, madvise)
    give_back = _emit_give_back(module, free)
    release = _emit_release(module, give_back)
    _emit_init(module, acquire)
    _emit_dtor(module, release, drop_kept)
    _emit_grow(module, acquire, give_back, memcpy)
    _emit_trim(module, release, acquire, give_back, memcpy)
    _emit_drain(module, free)
