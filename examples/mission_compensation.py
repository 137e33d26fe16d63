"""A change is made, reconciled and undone by a second operation: the other control simulation.

Run it with ``python examples/mission_compensation.py``. It ends with 5 spent, nothing reserved, 13
events: the compensation has its own cost, and what it undid stays in the books as applied.
"""

from __future__ import annotations

from mission_retry import GATE, GRANT, admit, settle, told

GRAPH = {
    "id": "graph",
    "revision": "1",
    "nodes": [
        {"id": "task", "kind": "TASK", "dependsOn": [], "config": {"executionKind": "FUNCTION"}},
        {"id": "reconcile", "kind": "RECONCILIATION", "dependsOn": ["task"], "config": {}},
        {"id": "undo", "kind": "COMPENSATION", "dependsOn": ["reconcile"], "config": {}},
        {"id": "end", "kind": "END", "dependsOn": ["undo"], "config": {}},
    ],
}


def complete(node_id: str, **result: str) -> dict[str, object]:
    """Return the command that marks a node done."""
    return {"type": "completeNode", "runId": "r", "nodeId": node_id, "result": result}


COMMANDS: list[dict[str, object]] = [
    {"type": "startRun", "runId": "r"},
    {"type": "registerGraph", "graph": GRAPH},
    {"type": "attachGraph", "runId": "r", "graphId": "graph"},
    {"type": "grant", "grant": GRANT},
    admit("o", "a"),
    {"type": "dispatch", "attemptId": "a", **GATE, "nodeId": "task"},
    settle("a", "CONFIRMED_APPLIED", "3"),
    complete("task", operationId="o"),
    complete("reconcile", operationId="o"),
    admit("undo", "au"),
    {"type": "dispatch", "attemptId": "au", **GATE, "nodeId": "undo"},
    settle("au", "CONFIRMED_APPLIED", "2"),
    complete("undo", operationId="undo", originalOperationId="o"),
]

if __name__ == "__main__":
    end = told(COMMANDS)
    assert (end["spent"], end["reserved"], end["events"]) == ("5", "0", "13")
    nodes = {name: node.status.value for name, node in end.parts.runs["r"].nodes.items()}
    print(nodes)
    assert [nodes[name] for name in ("task", "reconcile", "undo")] == ["DONE"] * 3
