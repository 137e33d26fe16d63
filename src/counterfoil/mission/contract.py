"""The contract of a mission: its money, its time, and what may be done at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from counterfoil.mission.amounts import Amount, write_amount
from counterfoil.mission.errors import ContractError
from counterfoil.mission.parsing import Json, Members, load_object
from counterfoil.mission.vocabulary import Feature

if TYPE_CHECKING:
    from collections.abc import Mapping

EDITION = "0.4"
PROFILE = "finite-v1"


@dataclass(frozen=True, slots=True)
class Contract:
    """What one mission may spend and do, and until when. Made by ``parse_contract``.

    ``deadline_ms`` is on the caller's clock, as is every ``now``; ``requires_approval`` asks for
    an approval of every operation.
    """

    id: str
    mission_id: str
    budget: Amount
    deadline_ms: int
    criteria: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    requires_approval: bool
    attempts_max: int
    authorization_age_max_ms: int
    features: tuple[Feature, ...]

    def plain(self) -> dict[str, Json]:
        """Return the contract under its JSON names, amounts without trailing zeros."""
        return {
            "id": self.id,
            "missionId": self.mission_id,
            "aiwsEdition": EDITION,
            "profile": PROFILE,
            "budget": write_amount(self.budget),
            "deadline": str(self.deadline_ms),
            "criteria": list(self.criteria),
            "actions": list(self.actions),
            "resources": list(self.resources),
            "requiresApproval": self.requires_approval,
            "maxAttempts": str(self.attempts_max),
            "maxAuthorizationAgeMs": str(self.authorization_age_max_ms),
            "features": [feature.value for feature in self.features],
        }


def parse_contract(source: str | bytes | Mapping[str, object]) -> Contract:
    """Read a contract from JSON text, UTF-8 bytes or an already decoded mapping.

    Raises ContractError with a JSON Pointer for unknown or missing members, wrong types, another
    edition or profile, and whatever else cannot be used.
    """
    members = Members(load_object(source, ContractError), "", ContractError)
    members.constant("aiwsEdition", EDITION)
    members.constant("profile", PROFILE)
    contract = Contract(
        id=members.name("id"),
        mission_id=members.name("missionId"),
        budget=members.amount("budget"),
        deadline_ms=members.count("deadline"),
        criteria=members.names("criteria"),
        actions=members.names("actions"),
        resources=members.names("resources"),
        requires_approval=members.flag("requiresApproval"),
        attempts_max=members.count("maxAttempts", least=1),
        authorization_age_max_ms=members.count("maxAuthorizationAgeMs"),
        features=_features(members),
    )
    members.close()
    return contract


def _features(members: Members) -> tuple[Feature, ...]:
    found: list[Feature] = []
    for index, name in enumerate(members.names("features")):
        try:
            found.append(Feature(name))
        except ValueError:
            members.fail_below(f"features/{index}", f"must be one of {', '.join(Feature)}")
    return tuple(found)
