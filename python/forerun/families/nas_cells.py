"""Cells of NAS-Bench-201: four nodes, an operation on each of the six edges from an earlier node to a later one.

    |nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|

Nodes 1, 2 and 3 in order, separated by "+"; an edge is its operation and the node that it comes from.
"""

from __future__ import annotations

import random
from typing import List, Sequence

Cell = List[List[str]]  # operations of the edges into nodes 1, 2, 3; the k-th of a node comes from node k

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
NODES = 4


def parse(text: str) -> Cell:
    """The operations that a cell's text names; raises ValueError where it is no cell."""
    nodes = text.split("+")
    if len(nodes) != NODES - 1:
        raise ValueError(f"cell {text!r} has {len(nodes)} nodes with edges: write {NODES - 1}, separated by '+'")
    return [_edges(node, number) for number, node in enumerate(nodes, 1)]


def _edges(text: str, node: int) -> List[str]:
    edges = text.split("|")
    if len(edges) != node + 2 or edges[0] or edges[-1]:
        raise ValueError(f"node {node} of a cell is {text!r}: write {node} of |operation~node, and | at the end")
    operations: List[str] = []
    for source, edge in enumerate(edges[1:-1]):
        operation, _, origin = edge.partition("~")
        if operation not in OPERATIONS:
            raise ValueError(f"edge {edge!r} into node {node} of a cell has no operation known here: use one of "
                             f"{', '.join(OPERATIONS)}")
        if origin != str(source):
            raise ValueError(f"edge {edge!r} into node {node} of a cell should come from node {source}: "
                             f"write {operation}~{source}")
        operations.append(operation)
    return operations


def text_of(cell: Sequence[Sequence[str]]) -> str:
    return "+".join("|" + "".join(f"{operation}~{source}|" for source, operation in enumerate(node)) for node in cell)


def passes_input(cell: Sequence[Sequence[str]]) -> bool:
    """Whether the last node depends on the first: some way between them has no edge `none`."""
    depends = [True]
    for node in cell:
        depends.append(any(operation != "none" and depends[source] for source, operation in enumerate(node)))
    return depends[-1]


def draw(rng: random.Random) -> str:
    """One of the 15,625 cells, each as likely as the next, but none whose output is the same for every input."""
    cell: Cell = []
    while not cell or not passes_input(cell):
        cell = [[rng.choice(OPERATIONS) for _ in range(node)] for node in range(1, NODES)]
    return text_of(cell)
