"""Writes the shipped corpora, byte for byte the same on every machine: ``make corpus``.

The only writer of ``corpus/vectors-*``. Cases that are no longer there are taken away.
"""

from __future__ import annotations

import shutil
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.conformance.corpus import core, hard
from counterfoil.conformance.corpus.building import json_bytes
from counterfoil.conformance.manifest import MANIFEST, RECORD, SHIPPED, SUITE, corpus_digest
from counterfoil.record.model import CONTRACT_ID

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case, Corpus, Members
    from counterfoil.conformance.scenario import Json

VERIFIER_CONTRACT = (
    "A verifier is run as `verifier record.json --json`. It prints one JSON object with decision "
    "and reason, and exits 0 for allow and 1 for deny. For expected.decision malformed it exits 2 "
    "and prints no decision."
)


def corpora() -> tuple[Corpus, ...]:
    """Return every shipped corpus."""
    return core.corpus(), hard.corpus()


def write(corpus: Corpus, folder: Path) -> None:
    """Write a corpus into its folder below this one."""
    root = folder / corpus.name
    if (root / MANIFEST).exists():
        shutil.rmtree(root / "cases", ignore_errors=True)
    for case in corpus.cases:
        place = root / "cases" / case.id
        place.mkdir(parents=True)
        (place / RECORD).write_bytes(case.data)
    (root / "README.md").write_bytes(corpus.readme.encode())
    (root / MANIFEST).write_bytes(json_bytes(manifest(corpus)))


def manifest(corpus: Corpus) -> Members:
    """Return the manifest of a corpus."""
    vectors: list[Json] = [_vector(case) for case in corpus.cases]
    return {
        "contractId": CONTRACT_ID,
        "corpusDigest": corpus_digest(vectors),
        "suite": SUITE,
        "vectors": vectors,
        "verifierContract": VERIFIER_CONTRACT,
    }


def _vector(case: Case) -> Members:
    vector: Members = {
        "id": case.id,
        "path": f"cases/{case.id}",
        "files": {RECORD: sha256(case.data).hexdigest()},
        "expected": {"decision": case.decision, "reason": case.reason},
        "edit": case.edit,
        "scenario": case.scenario,
    }
    if case.parent is not None:
        vector["parent"] = case.parent
    return vector


def main(argv: list[str]) -> int:
    """Write every corpus into the folder that ``argv`` names, or into this package."""
    folder = Path(argv[0]) if argv else SHIPPED
    for corpus in corpora():
        write(corpus, folder)
        print(f"{folder / corpus.name}: {len(corpus.cases)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
