"""The machine code of the pool: what pool.py says, written with llvmlite's builder."""

from __future__ import annotations

from llvmlite import ir

from splitad.tape.machine_code import (
    Emit,
    c_function,
    external,
    i32,
    i64,
    large_pages,
    variable,
    void,
)

MAX_BLOCKS = 16
MAX_POOLED = 256 << 20
MIN_POOLED = 64 << 10  # smaller blocks are not worth a place
SLACK = 4  # a pooled block may be so many times larger than what was asked for
ALIGN = 64
TRIES = 100

# The state: so many 64-bit integers, then the addresses of the pooled blocks.
LOCK, LIVE_TAPES, LIVE_BYTES, POOLED_BYTES, COUNT, BLOCKS = range(6)
STATE_WORDS = BLOCKS + MAX_BLOCKS

_i1 = ir.IntType(1)


class _Emit(Emit):
    """With the pool's state."""

    state_address: ir.Value  # of this process

    def state(self, which: int) -> ir.Value:
        return self.b.add(self.state_address, self.const(8 * which))

    def slot(self, index: ir.Value) -> ir.Value:
        return self.b.add(self.state(BLOCKS), self.b.shl(index, self.const(3)))

    def count(self, which: int, delta: ir.Value | int, sign: str = "add") -> None:
        delta = self.const(delta) if isinstance(delta, int) else delta
        self.b.atomic_rmw(sign, self.at(self.state(which)), delta, "monotonic")

    def try_lock(self) -> ir.Value:
        """Whether the lock was taken."""
        got = self.b.alloca(_i1)
        self.b.store(_i1(0), got)
        left = self.b.alloca(i64)
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


def _emit_acquire(module: ir.Module, malloc: ir.Function) -> ir.Function:
    """acquire(size) -> address of a block of at least `size` bytes, or 0."""
    e = _Emit(module, "splitad_block_acquire", i64, 1)
    b = e.b
    rounded = b.add(b.or_(e.fn.args[0], e.const(ALIGN - 1)), e.const(1))
    size = b.select(
        b.icmp_signed("==", b.and_(e.fn.args[0], e.const(ALIGN - 1)), e.const(0)),
        e.fn.args[0],
        rounded,
    )
    size = e.maximum(size, e.const(ALIGN))
    best, best_size = b.alloca(i64), b.alloca(i64)
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
    large_pages(module)(e, block, size)
    e.count(LIVE_BYTES, size)
    b.ret(block)
    return e.fn


def _emit_give_back(module: ir.Module, free: ir.Function) -> ir.Function:
    """give_back(block): to the pool, or to free()."""
    e = _Emit(module, "splitad_block_release", void, 1)
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
    e = _Emit(module, "splitad_pool_drain", void, 0)
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
    e = _Emit(module, "splitad_tape_init", void, 3)
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
    e = _Emit(module, "splitad_tape_release", void, 1)
    b, handle = e.b, e.fn.args[0]
    block = e.load(handle, _ADDRESS)
    with b.if_then(b.icmp_signed("!=", block, e.const(0))):
        for at in (_ADDRESS, _CAPACITY, _USED):
            e.store(0, handle, at)
        b.call(give_back, [block])
    b.ret_void()
    return e.fn


def _emit_dtor(module: ir.Module, release: ir.Function, drop_kept: ir.Function) -> None:
    e = _Emit(module, "splitad_tape_dtor", void, 3)
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
    e = _Emit(module, "splitad_tape_grow", i32, 3)
    b = e.b
    handle, used, total = e.fn.args
    with b.if_then(b.icmp_signed("<=", total, e.load(handle, _CAPACITY))):
        b.ret(i32(1))
    limit = e.load(handle, _LIMIT)
    with b.if_then(b.icmp_signed(">", total, limit)):
        b.ret(i32(0))
    doubled = b.mul(e.load(handle, _CAPACITY), e.const(2))
    block = _emit_swap(e, used, e.minimum(e.maximum(total, doubled), limit), *blocks)
    b.ret(b.select(b.icmp_signed("==", block, e.const(0)), i32(-1), i32(1)))


def _emit_trim(module: ir.Module, release: ir.Function, *blocks: ir.Function) -> None:
    e = _Emit(module, "splitad_tape_trim", void, 1)
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


def emit(module: ir.Module, state_address: int, drop_kept_address: int) -> None:
    """Add the pool's functions to a module. drop_kept_address: of what drops a reference to a MemInfo."""
    _Emit.state_address = variable(module, "splitad_pool_state", state_address)

    def from_c(name: str, result: ir.Type, args: list[ir.Type]) -> ir.Function:
        return external(module, name, result, args, c_function(name))

    malloc, free = from_c("malloc", i64, [i64]), from_c("free", void, [i64])
    memcpy = from_c("memcpy", i64, [i64, i64, i64])
    drop_kept = external(module, "drop_kept", void, [i64], drop_kept_address)
    acquire = _emit_acquire(module, malloc)
    give_back = _emit_give_back(module, free)
    release = _emit_release(module, give_back)
    _emit_init(module, acquire)
    _emit_dtor(module, release, drop_kept)
    _emit_grow(module, acquire, give_back, memcpy)
    _emit_trim(module, release, acquire, give_back, memcpy)
    _emit_drain(module, free)
