"""Random undirected graphs of RandWire networks: for a seed, those of networkx and of the zoo (src/zoo/random_wiring).

Watts-Strogatz (tried until connected), Erdos-Renyi and Barabasi-Albert, after the published algorithms. A graph lists
each node's neighbours in the order in which their edges were added; the order of draws from random.Random matters,
and for Barabasi-Albert so does the order in which CPython iterates over a set of integers.
"""

from __future__ import annotations

import random
from typing import List, Optional, Set

Wiring = List[List[int]]

NEIGHBOURS = 4  # Watts-Strogatz
REWIRE = 0.75
EDGE = 0.2  # Erdos-Renyi
ATTACHED = 5  # Barabasi-Albert
ATTEMPTS = 100


def wire(kind: str, nodes: int, seed: int) -> Wiring:
    """The graph of one RandWire stage; raises ValueError where there is none."""
    least = {"ws": NEIGHBOURS, "er": 1, "ba": ATTACHED + 1}
    if kind not in least:
        raise ValueError(f"there is no random graph of kind {kind!r}: use ws, er or ba")
    if nodes < least[kind]:
        raise ValueError(f"a {kind} graph needs at least {least[kind]} nodes")
    if kind == "er":
        return erdos_renyi(nodes, EDGE, seed)
    if kind == "ba":
        return barabasi_albert(nodes, ATTACHED, seed)
    wiring = watts_strogatz(nodes, NEIGHBOURS, REWIRE, seed)
    if wiring is None:
        raise ValueError(f"seed {seed} gives no connected graph: use another seed")
    return wiring


def watts_strogatz(nodes: int, neighbours: int, probability: float, seed: int) -> Optional[Wiring]:
    """Each node joined to `neighbours` around a ring, edges rewired with `probability`; None if never connected."""
    if neighbours == nodes:
        return erdos_renyi(nodes, 1.0, seed)
    rng = random.Random(seed)
    for _ in range(ATTEMPTS):
        wiring = _ring_rewired(nodes, neighbours, probability, rng)
        if _connected(wiring):
            return wiring
    return None


def erdos_renyi(nodes: int, probability: float, seed: int) -> Wiring:
    """Each edge present with `probability`."""
    rng = random.Random(seed)
    wiring: Wiring = [[] for _ in range(nodes)]
    for a in range(nodes):
        for b in range(a + 1, nodes):
            if probability >= 1 or rng.random() < probability:
                _join(wiring, a, b)
    return wiring


def barabasi_albert(nodes: int, edges: int, seed: int) -> Wiring:
    """A star of `edges` + 1 nodes; every further node is joined to `edges` earlier ones, drawn by their degree."""
    rng = random.Random(seed)
    wiring: Wiring = [[] for _ in range(nodes)]
    by_degree = [0] * edges  # every node once for each of its edges
    for node in range(1, edges + 1):
        _join(wiring, 0, node)
        by_degree.append(node)
    for source in range(edges + 1, nodes):
        targets: Set[int] = set()
        while len(targets) < edges:
            targets.add(rng.choice(by_degree))
        for target in targets:
            _join(wiring, source, target)
            by_degree.append(target)
        by_degree.extend([source] * edges)
    return wiring


def _ring_rewired(nodes: int, neighbours: int, probability: float, rng: random.Random) -> Wiring:
    wiring: Wiring = [[] for _ in range(nodes)]
    everyone = range(nodes)
    for distance in range(1, neighbours // 2 + 1):
        for u in everyone:
            _join(wiring, u, (u + distance) % nodes)
    for distance in range(1, neighbours // 2 + 1):
        for u in everyone:
            if rng.random() < probability:
                _rewire(wiring, u, (u + distance) % nodes, rng)
    return wiring


def _rewire(wiring: Wiring, u: int, old: int, rng: random.Random) -> None:
    """Moves the edge u-old to a node drawn at random, unless u is joined to all nodes."""
    nodes = range(len(wiring))
    new = rng.choice(nodes)
    while new == u or new in wiring[u]:
        new = rng.choice(nodes)
        if len(wiring[u]) >= len(wiring) - 1:
            return
    _part(wiring, u, old)
    _join(wiring, u, new)


def _join(wiring: Wiring, a: int, b: int) -> None:
    if b not in wiring[a]:
        wiring[a].append(b)
        wiring[b].append(a)


def _part(wiring: Wiring, a: int, b: int) -> None:
    if b in wiring[a]:
        wiring[a].remove(b)
        wiring[b].remove(a)


def _connected(wiring: Wiring) -> bool:
    seen = {0}
    open_nodes = [0]
    while open_nodes:
        for neighbour in wiring[open_nodes.pop()]:
            if neighbour not in seen:
                seen.add(neighbour)
                open_nodes.append(neighbour)
    return len(seen) == len(wiring)
