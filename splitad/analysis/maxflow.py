"""Maximum flow and the minimum cut nearest to the sink (Dinic's algorithm).

Source: Y. Dinitz, "Dinitz' algorithm: the original version and Even's version", 2006.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

INFINITE = float("inf")


class FlowGraph:
    """Directed edges with capacities between hashable nodes."""

    def __init__(self) -> None:
        self._index: dict[Hashable, int] = {}
        self._edges: list[list[int]] = []  # per node: indices into the arrays below
        self._to: list[int] = []
        self._capacity: list[float] = []

    def _node(self, key: Hashable) -> int:
        if key not in self._index:
            self._index[key] = len(self._edges)
            self._edges.append([])
        return self._index[key]

    def edge(self, a: Hashable, b: Hashable, capacity: float) -> None:
        u, v = self._node(a), self._node(b)
        for start, end, room in ((u, v, capacity), (v, u, 0.0)):
            self._edges[start].append(len(self._to))
            self._to.append(end)
            self._capacity.append(room)

    def sink_side(self, source: Hashable, sink: Hashable) -> set[Hashable]:
        """The nodes from which the sink can still be reached once the flow is maximal."""
        s, t = self._node(source), self._node(sink)
        while True:
            level = self._levels(s)
            if t not in level:
                break
            progress = [0] * len(self._edges)
            while self._augment(s, t, level, progress):
                pass
        reach = {t}
        queue = deque([t])
        while queue:
            node = queue.popleft()
            for e in self._edges[node]:
                back = self._to[e]
                if self._capacity[e ^ 1] > 0 and back not in reach:
                    reach.add(back)
                    queue.append(back)
        return {key for key, node in self._index.items() if node in reach}

    def _levels(self, s: int) -> dict[int, int]:
        level = {s: 0}
        queue = deque([s])
        while queue:
            node = queue.popleft()
            for e in self._edges[node]:
                if self._capacity[e] > 0 and self._to[e] not in level:
                    level[self._to[e]] = level[node] + 1
                    queue.append(self._to[e])
        return level

    def _augment(self, s: int, t: int, level: dict[int, int], progress: list[int]) -> bool:
        """Push flow along one shortest path, found depth first without recursion."""
        path: list[int] = []
        node = s
        while node != t:
            edges = self._edges[node]
            while progress[node] < len(edges):
                e = edges[progress[node]]
                nxt = self._to[e]
                if self._capacity[e] > 0 and level.get(nxt, -1) == level[node] + 1:
                    path.append(e)
                    node = nxt
                    break
                progress[node] += 1
            else:
                if not path:
                    return False
                node = self._to[path.pop() ^ 1]
                progress[node] += 1
        amount = min(self._capacity[e] for e in path)
        for e in path:
            self._capacity[e] -= amount
            self._capacity[e ^ 1] += amount
        return True
