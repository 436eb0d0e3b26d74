"""maxflow: the cut has the value of the flow that scipy finds, and lies nearest to the sink."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from splitad.analysis.maxflow import INFINITE, FlowGraph


def graph_of(capacity: np.ndarray) -> FlowGraph:
    graph = FlowGraph()
    for a, b in zip(*np.nonzero(capacity), strict=True):
        graph.edge(int(a), int(b), float(capacity[a, b]))
    return graph


def cut_value(capacity: np.ndarray, side: set[object]) -> float:
    inside = np.array([node in side for node in range(len(capacity))])
    return float(capacity[~inside][:, inside].sum())


def random_capacities(seed: int, nodes: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    capacity = rng.integers(1, 9, (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.35)
    np.fill_diagonal(capacity, 0)
    capacity[:, 0] = capacity[-1] = 0  # nothing flows into the source or out of the sink
    return capacity


@pytest.mark.parametrize("seed", range(20))
def test_value_of_the_cut(seed: int) -> None:
    capacity = random_capacities(seed, 14)
    side = graph_of(capacity).sink_side(0, 13)
    assert 13 in side and 0 not in side
    flow = maximum_flow(csr_array(capacity.astype(np.int32)), 0, 13)
    assert cut_value(capacity, side) == flow.flow_value


@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_sink_side_of_all_minimum_cuts(seed: int) -> None:
    capacity = random_capacities(100 + seed, 7)
    side = graph_of(capacity).sink_side(0, 6)
    inner = range(1, 6)
    sides = [{6, *chosen} for size in range(6) for chosen in itertools.combinations(inner, size)]
    best = min(cut_value(capacity, s) for s in sides)
    smallest = set.intersection(*(s for s in sides if cut_value(capacity, s) == best))
    # nodes that no edge touches are not in the graph
    assert side == smallest


def test_infinite_edges_are_not_cut() -> None:
    graph = FlowGraph()
    for a, b, c in [
        ("s", "a", INFINITE), ("a", "b", 3.0), ("b", "c", INFINITE), ("c", "d", 5.0), ("d", "t", INFINITE),
    ]:  # fmt: skip
        graph.edge(a, b, c)
    assert graph.sink_side("s", "t") == {"b", "c", "d", "t"}


def test_nothing_flows() -> None:
    graph = FlowGraph()
    graph.edge("s", "a", 1.0)
    graph.edge("b", "t", 1.0)
    assert graph.sink_side("s", "t") == {"b", "t"}
