"""A map that is never changed: ``set`` gives a new one that shares almost everything.

A trie over the hash of the key, 32 ways at each level; a leaf is a small dict. One ``set``
copies one leaf and the few nodes above it, so its cost does not follow the size, and every
older map stays as it was. No order is promised that could depend on the seed of the hash:
iteration is by sorted key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, Self, TypeAlias, TypeVar, overload

V = TypeVar("V")
D = TypeVar("D")

_BITS = 5
_WAYS = 1 << _BITS
_MASK = _WAYS - 1
_LEAF_MAX = 16
_LEVELS_MAX = 12
"""Below this level a leaf just grows: the bits of the hash are used up."""

_ABSENT = object()

Node: TypeAlias = "list[Node[V]] | dict[str, V]"


class PersistentMap(Mapping[str, V], Generic[V]):
    """Text keys to values; equal to any mapping with the same items."""

    __slots__ = ("_root", "_size")

    def __init__(self, root: Node[V] | None = None, size: int = 0) -> None:
        """Make an empty map. The arguments are this module's own."""
        self._root: Node[V] = {} if root is None else root
        self._size = size

    def __getitem__(self, key: str) -> V:
        """Return the value of ``key``; KeyError if it has none."""
        node = self._root
        if type(node) is list:
            bits = hash(key)
            while type(node) is list:
                node = node[bits & _MASK]
                bits >>= _BITS
        return node[key]  # type: ignore[call-overload]

    @overload
    def get(self, key: str, /) -> V | None: ...
    @overload
    def get(self, key: str, /, default: V | D) -> V | D: ...
    def get(self, key: str, /, default: V | D | None = None) -> V | D | None:
        """Return the value of ``key``, or the default."""
        node = self._root
        if type(node) is list:
            bits = hash(key)
            while type(node) is list:
                node = node[bits & _MASK]
                bits >>= _BITS
        assert type(node) is dict
        return node.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Say whether ``key`` has a value."""
        return isinstance(key, str) and self.get(key, _ABSENT) is not _ABSENT

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._size

    def __iter__(self) -> Iterator[str]:
        """Yield the keys in sorted order, whatever the seed of the hash."""
        return iter(sorted(_keys(self._root)))

    def set(self, key: str, value: V) -> Self:
        """Return a map in which ``key`` has ``value``."""
        small = self._root
        if type(small) is dict and self._size < _LEAF_MAX:
            small = small.copy()
            small[key] = value
            return type(self)(small, len(small))
        root, leaf, above, way, level = self._opened(key)
        size = self._size - len(leaf)
        leaf[key] = value
        size += len(leaf)
        if len(leaf) > _LEAF_MAX and level < _LEVELS_MAX:
            split = _split(leaf, level)
            if above is None:
                root = split
            else:
                above[way] = split
        return type(self)(root, size)

    def without(self, key: str) -> Self:
        """Return a map in which ``key`` has no value; KeyError if it had none."""
        root, leaf, _, _, _ = self._opened(key)
        del leaf[key]
        return type(self)(root, self._size - 1)

    def _opened(self, key: str) -> tuple[Node[V], dict[str, V], list[Node[V]] | None, int, int]:
        """Return a root with its own copy of the path to the key's leaf, still to be written.

        With it the leaf, the node above it, the leaf's place there, and its level.
        """
        node = self._root
        if type(node) is dict:
            leaf = node.copy()
            return leaf, leaf, None, 0, 0
        bits = hash(key)
        assert type(node) is list
        root = above = node.copy()
        way = bits & _MASK
        node = above[way]
        level = 1
        while type(node) is list:
            below = node.copy()
            above[way] = below
            above = below
            bits >>= _BITS
            way = bits & _MASK
            node = above[way]
            level += 1
        assert type(node) is dict
        above[way] = leaf = node.copy()
        return root, leaf, above, way, level


def _split(leaf: dict[str, V], level: int) -> Node[V]:
    ways: list[dict[str, V]] = [{} for _ in range(_WAYS)]
    for key, value in leaf.items():
        ways[(hash(key) >> (_BITS * level)) & _MASK][key] = value
    return list(ways)


def _keys(node: Node[V]) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
        return
    for below in node:
        yield from _keys(below)
