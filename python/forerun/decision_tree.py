"""Small decision trees that choose among given answers.

Each case has features (numbers) and a loss for every answer. A tree splits cases by thresholds on features so that the
best single answer of each leaf loses least in all; the split that gains most is made first.
"""
from __future__ import annotations

import dataclasses
from operator import add, sub
from typing import Dict, List, Optional, Sequence, Tuple, Union

Vector = Sequence[float]


@dataclasses.dataclass(frozen=True)
class Split:
    """Cases up to the threshold go to node `below`, the others to `above`."""

    feature: int
    threshold: float
    below: int
    above: int


Node = Union[Split, int]  # an int is a leaf: the index of its answer


@dataclasses.dataclass(frozen=True)
class Limits:
    leaves: int = 64
    cases_in_leaf: int = 12
    gain: float = 0.3  # a split that saves less loss is not made
    thresholds: int = 64  # tried for a feature


Gain = Tuple[float, Optional[Tuple[int, float]]]


def build_tree(features: Sequence[Vector], losses: Sequence[Vector], limits: Limits = Limits()) -> List[Node]:
    """Nodes, the root first; children stand behind their parent."""
    nodes: List[Node] = [0]
    members: Dict[int, List[int]] = {0: list(range(len(features)))}
    gains: Dict[int, Gain] = {0: _best_split(members[0], features, losses, limits)}
    while len(gains) < limits.leaves:
        node = max(gains, key=lambda candidate: gains[candidate][0])
        gain, split = gains[node]
        if split is None or gain < limits.gain:
            break
        feature, threshold = split
        below, above = len(nodes), len(nodes) + 1
        nodes[node] = Split(feature, threshold, below, above)
        nodes += [0, 0]
        del gains[node]
        cases = members.pop(node)
        members[below] = [case for case in cases if features[case][feature] <= threshold]
        members[above] = [case for case in cases if features[case][feature] > threshold]
        for child in (below, above):
            gains[child] = _best_split(members[child], features, losses, limits)
    for leaf, cases in members.items():
        total = _sum(losses, cases)
        nodes[leaf] = total.index(min(total))
    return nodes


def answer(nodes: Sequence[Node], features: Vector) -> int:
    node = nodes[0]
    while isinstance(node, Split):
        node = nodes[node.below if features[node.feature] <= node.threshold else node.above]
    return node


def _sum(losses: Sequence[Vector], cases: Sequence[int]) -> List[float]:
    total = [0.0] * len(losses[0])
    for case in cases:
        total = list(map(add, total, losses[case]))
    return total


def _best_split(cases: List[int], features: Sequence[Vector], losses: Sequence[Vector], limits: Limits) -> Gain:
    total = _sum(losses, cases)
    now = min(total)
    best: Gain = (0.0, None)
    for feature in range(len(features[0])):
        ordered = sorted(cases, key=lambda case: features[case][feature])
        cuts = set(_cuts([features[case][feature] for case in ordered], limits))
        lower = [0.0] * len(total)
        for count, case in enumerate(ordered, start=1):
            lower = list(map(add, lower, losses[case]))
            if count not in cuts:
                continue
            gain = now - min(lower) - min(map(sub, total, lower))
            if gain > best[0] + 1e-9:
                left, right = features[case][feature], features[ordered[count]][feature]
                best = (gain, (feature, (left + right) / 2))
    return best


def _cuts(values: Sequence[float], limits: Limits) -> List[int]:
    """Numbers of cases below a threshold: where the value changes and both sides keep enough cases."""
    least = limits.cases_in_leaf
    changes = [i for i in range(least, len(values) - least + 1) if i < len(values) and values[i - 1] < values[i]]
    if len(changes) <= limits.thresholds:
        return changes
    step = (len(changes) - 1) / (limits.thresholds - 1)
    return [changes[round(i * step)] for i in range(limits.thresholds)]
