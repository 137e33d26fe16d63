"""A graph of work: nodes, what each waits for, and one END. Checked when it is read."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from counterfoil.mission.parsing import FrozenJson, Json, Members, freeze
from counterfoil.mission.vocabulary import NodeKind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One step: its kind says what completes it, ``depends_on`` what must be DONE before."""

    id: str
    kind: NodeKind
    depends_on: tuple[str, ...]
    config: FrozenJson


@dataclass(frozen=True, slots=True)
class Graph:
    """An acyclic set of nodes with one END on which nothing depends. Made by ``read_graph``."""

    id: str
    revision: int
    nodes: Mapping[str, GraphNode]
    end: GraphNode

    def plain(self) -> dict[str, Json]:
        """Return the graph under its JSON names."""
        return {
            "id": self.id,
            "revision": str(self.revision),
            "nodes": [
                {
                    "id": node.id,
                    "kind": node.kind.value,
                    "dependsOn": list(node.depends_on),
                    "config": node.config.thaw(),
                }
                for node in self.nodes.values()
            ],
        }


def read_graph(members: Members) -> Graph:
    """Read a graph's members; raises the document's error at what is wrong.

    Wrong are: ids that appear twice, an unknown kind, a dependency on no node or on END, no END
    or a second one, and nodes that wait for each other.
    """
    graph_id = members.name("id")
    revision = members.count("revision")
    found: dict[str, GraphNode] = {}
    end: GraphNode | None = None
    for index, value in enumerate(members.items("nodes")):
        item = members.item("nodes", index, value)
        node = _read_node(item)
        if node.id in found:
            item.fail("id", "appears twice; give each node its own")
        if node.kind is NodeKind.END:
            if end is not None:
                item.fail("kind", "is a second END; keep one")
            end = node
        found[node.id] = node
    members.close()
    if end is None:
        members.fail("nodes", "have no END; add one")
    _check_dependencies(members, found, end)
    if not _is_acyclic(found):
        members.fail("nodes", "wait for each other in a circle; break it")
    return Graph(graph_id, revision, MappingProxyType(found), end)


def _read_node(members: Members) -> GraphNode:
    node = GraphNode(
        id=members.name("id"),
        kind=members.word("kind", NodeKind),
        depends_on=members.names("dependsOn"),
        config=freeze(members.plain_object("config")),
    )
    members.close()
    return node


def _check_dependencies(members: Members, nodes: dict[str, GraphNode], end: GraphNode) -> None:
    for index, node in enumerate(nodes.values()):
        for place, wanted in enumerate(node.depends_on):
            if wanted not in nodes:
                members.fail_below(f"nodes/{index}/dependsOn/{place}", "is no node of this graph")
            if wanted == end.id:
                members.fail_below(
                    f"nodes/{index}/dependsOn/{place}", "is the END; wait for others"
                )


def _is_acyclic(nodes: dict[str, GraphNode]) -> bool:
    waiting = {node.id: len(node.depends_on) for node in nodes.values()}
    followers: dict[str, list[str]] = {name: [] for name in nodes}
    for node in nodes.values():
        for wanted in node.depends_on:
            followers[wanted].append(node.id)
    free = [name for name, count in waiting.items() if not count]
    done = 0
    while free:
        done += 1
        for name in followers[free.pop()]:
            waiting[name] -= 1
            if not waiting[name]:
                free.append(name)
    return done == len(nodes)
