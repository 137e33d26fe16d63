"""The control plane of a mission as a pure fold: money, authority, runs and graphs over effects.

``create_mission(parse_contract(text))`` is the state before the first command;
``reduce(state, parse_command(text), now)`` the one after it. Nothing here reads a clock, draws
a number or touches a file: whoever keeps the commands can fold them again to the same bytes.
"""

from counterfoil.mission.amounts import Amount, parse_amount, write_amount
from counterfoil.mission.commands import Action, Command, action_digest
from counterfoil.mission.contract import Contract, parse_contract
from counterfoil.mission.decoding import COMMAND_TYPES, parse_command, parse_line
from counterfoil.mission.draft import Lookup, Retired
from counterfoil.mission.errors import (
    Code,
    CommandError,
    CommandRejected,
    ContractError,
    MissionInput,
)
from counterfoil.mission.reduce import find_operation, reduce, retire, retire_settled
from counterfoil.mission.snapshot import (
    read_retired,
    read_snapshot,
    retired_bytes,
    snapshot_bytes,
)
from counterfoil.mission.state import State, canonical_state_bytes, create_mission

__all__ = [
    "COMMAND_TYPES",
    "Action",
    "Amount",
    "Code",
    "Command",
    "CommandError",
    "CommandRejected",
    "Contract",
    "ContractError",
    "Lookup",
    "MissionInput",
    "Retired",
    "State",
    "action_digest",
    "canonical_state_bytes",
    "create_mission",
    "find_operation",
    "parse_amount",
    "parse_command",
    "parse_contract",
    "parse_line",
    "read_retired",
    "read_snapshot",
    "reduce",
    "retire",
    "retire_settled",
    "retired_bytes",
    "snapshot_bytes",
    "write_amount",
]
