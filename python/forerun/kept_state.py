"""Keeps what a training iteration changes beside tensors, so that one can be tried without a trace: random numbers, and
what objects hold in their attributes, lists and tables."""
from __future__ import annotations

import collections
import contextlib
import random
import sys
from typing import Any, Callable, Dict, Iterator, List

import torch

_MOST_ENTRIES = 1000  # of a list or table whose entries are looked into; a data set in an attribute is longer


@contextlib.contextmanager
def random_state_kept() -> Iterator[None]:
    """The program's random numbers go on afterwards as if nothing had been drawn."""
    numpy: Any = sys.modules.get("numpy")
    python, own, foreign = random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        random.setstate(python)
        torch.set_rng_state(own)
        if numpy:
            numpy.random.set_state(foreign)


@contextlib.contextmanager
def attributes_kept(*owners: Any) -> Iterator[None]:
    """The owners' attributes are afterwards what they were, and so are lists, sets and tables among them."""
    undo: Dict[int, Callable[[], None]] = {}
    for owner in owners:
        _remember(vars(owner), undo)
    try:
        yield
    finally:
        for put_back in undo.values():
            put_back()


def _remember(value: Any, undo: Dict[int, Callable[[], None]]) -> None:
    """Adds how the container, and those in it, become what they are now."""
    if id(value) in undo or not isinstance(value, (dict, list, set, collections.deque)):
        return
    content = _content(value)
    undo[id(value)] = lambda: _refill(value, content)
    if len(content) <= _MOST_ENTRIES:
        for entry in content:
            _remember(entry, undo)


def _content(container: Any) -> List[Any]:
    """Its entries; of a table keys and values in turn."""
    if isinstance(container, dict):
        return [part for entry in container.items() for part in entry]
    return list(container)


def _refill(container: Any, content: List[Any]) -> None:
    now = _content(container)
    if len(now) == len(content) and all(a is b for a, b in zip(now, content)):
        return
    container.clear()
    if isinstance(container, dict):
        container.update(zip(content[::2], content[1::2]))
    elif isinstance(container, set):
        container.update(content)
    else:
        container.extend(content)
