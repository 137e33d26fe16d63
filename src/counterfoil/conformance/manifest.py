"""A corpus on disk: ``MANIFEST.json`` and one folder a case, read strictly.

Every fault of a folder is named, not the first alone: a corpus that is half broken judges nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NoReturn

from counterfoil.conformance.corpus.building import MALFORMED, json_bytes
from counterfoil.errors import BadInput
from counterfoil.limits import RECORD_BYTES_MAX
from counterfoil.record.model import CONTRACT_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from counterfoil.conformance.corpus.building import Members
    from counterfoil.conformance.scenario import Json

SHIPPED = Path(__file__).parent / "corpus"
DEFAULT = "vectors-uncertain-effect"
SUITE = "uncertain-effect/v1"
MANIFEST = "MANIFEST.json"
RECORD = "record.json"
DECISIONS = ("allow", "deny", MALFORMED)
MANIFEST_BYTES_MAX = 16 * 1024 * 1024
"""One manifest: a page a case, for ten thousand cases."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


class BrokenCorpus(BadInput):
    """A folder that is no whole corpus: nothing was judged. ``faults`` are sentences, one each."""

    def __init__(self, folder: Path, faults: tuple[str, ...]) -> None:
        lines = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(
            f"the corpus in {str(folder)!r} cannot be used; mend it or fetch it anew:{lines}"
        )
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Vector:
    """One case as it was read: the record's bytes, and the answer that is expected.

    ``reason`` is not compared where the decision is ``malformed``.
    """

    id: str
    data: bytes
    decision: str
    reason: str
    edit: str
    scenario: str
    parent: str | None

    @property
    def expected(self) -> str:
        """The expected answer in words."""
        return MALFORMED if self.decision == MALFORMED else f"{self.decision} {self.reason}"


@dataclass(frozen=True, slots=True)
class ReadCorpus:
    """A whole corpus: the name of its folder, its digest, its cases in the manifest's order."""

    name: str
    digest: str
    vectors: tuple[Vector, ...]


def shipped_names() -> tuple[str, ...]:
    """Return the names of the shipped corpora, sorted."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob(f"*/{MANIFEST}")))


def corpus_digest(vectors: Json) -> str:
    """Return the sha256, in hex, of a manifest's list of vectors."""
    return sha256(json_bytes(vectors)).hexdigest()


def load_corpus(folder: Path) -> ReadCorpus:
    """Read a corpus. Raises ``BrokenCorpus`` with every fault that it finds."""
    return _Reading(folder).corpus()


class _Reading:
    """One reading of a folder; faults are gathered as they are met."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._faults: list[str] = []

    def corpus(self) -> ReadCorpus:
        manifest = self._manifest()
        self._expect(manifest, "suite", SUITE)
        self._expect(manifest, "contractId", CONTRACT_ID)
        if "verifierContract" not in manifest:
            self._faults.append(f"{MANIFEST} has no verifierContract")
        listed = manifest.get("vectors")
        if not isinstance(listed, list) or not listed:
            self._faults.append(f"{MANIFEST} lists no vectors")
            self._refuse()
        digest = corpus_digest(listed)
        self._expect(manifest, "corpusDigest", digest)
        vectors = tuple(self._vectors(listed))
        self._compare_folders({vector.id for vector in vectors})
        if self._faults:
            self._refuse()
        return ReadCorpus(self._folder.resolve().name, digest, vectors)

    def _refuse(self) -> NoReturn:
        raise BrokenCorpus(self._folder, tuple(self._faults))

    def _expect(self, manifest: Members, name: str, value: str) -> None:
        if name not in manifest:
            self._faults.append(f"{MANIFEST} has no {name}")
        elif manifest[name] != value:
            self._faults.append(f"{MANIFEST}: {name} is {_shown(manifest[name])}, not {value!r}")

    def _manifest(self) -> Members:
        if not self._folder.is_dir():
            raise BadInput(f"no folder {str(self._folder)!r}; name a shipped corpus or a folder")
        try:
            data = _read(self._folder / MANIFEST, MANIFEST_BYTES_MAX)
            value: Json = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
        except OSError as error:
            self._faults.append(f"{MANIFEST} cannot be read: {error.strerror}")
            self._refuse()
        except (ValueError, RecursionError) as error:
            self._faults.append(f"{MANIFEST} is no JSON that can be used: {error}")
            self._refuse()
        if not isinstance(value, dict):
            self._faults.append(f"{MANIFEST} is no object")
            self._refuse()
        return value

    def _vectors(self, listed: list[Json]) -> Iterator[Vector]:
        seen: set[str] = set()
        for index, entry in enumerate(listed):
            if not isinstance(entry, dict):
                self._faults.append(f"vector {index} is no object")
                continue
            vector_id = entry.get("id")
            if not isinstance(vector_id, str) or not _ID.fullmatch(vector_id):
                self._faults.append(f"vector {index} has an id that names no folder")
                continue
            if vector_id in seen:
                self._faults.append(f"{vector_id}: the id is there twice")
                continue
            seen.add(vector_id)
            vector = self._vector(vector_id, entry)
            if vector is not None:
                yield vector

    def _vector(self, vector_id: str, entry: Members) -> Vector | None:
        before = len(self._faults)
        decision, reason = self._expected(vector_id, entry.get("expected"))
        if entry.get("path") != f"cases/{vector_id}":
            self._faults.append(
                f"{vector_id}: path is {_shown(entry.get('path'))}, not 'cases/{vector_id}'"
            )
            return None
        data = self._files(vector_id, entry.get("files"))
        if data is None or len(self._faults) > before:
            return None
        parent = entry.get("parent")
        return Vector(
            id=vector_id,
            data=data,
            decision=decision,
            reason=reason,
            edit=_text(entry.get("edit")),
            scenario=_text(entry.get("scenario")),
            parent=parent if isinstance(parent, str) else None,
        )

    def _expected(self, vector_id: str, expected: Json) -> tuple[str, str]:
        decision = expected.get("decision") if isinstance(expected, dict) else None
        reason = expected.get("reason") if isinstance(expected, dict) else None
        if not isinstance(decision, str) or decision not in DECISIONS:
            self._faults.append(
                f"{vector_id}: the decision {_shown(decision)} is none of {', '.join(DECISIONS)}"
            )
        elif decision != MALFORMED and not (isinstance(reason, str) and reason):
            self._faults.append(f"{vector_id}: expected names no reason")
        return _text(decision), _text(reason)

    def _files(self, vector_id: str, files: Json) -> bytes | None:
        """Compare every file of a case with its digest; return the record's bytes."""
        if not isinstance(files, dict) or RECORD not in files:
            self._faults.append(f"{vector_id}: files names no {RECORD}")
            return None
        record: bytes | None = None
        for name, digest in files.items():
            data = self._file(vector_id, name)
            if data is None:
                continue
            if not isinstance(digest, str) or not _HEX.fullmatch(digest):
                self._faults.append(f"{vector_id}: {name} has no sha256 of 64 hex digits")
            elif sha256(data).hexdigest() != digest:
                self._faults.append(f"{vector_id}: the sha256 of {name} is another")
            elif name == RECORD:
                record = data
        return record

    def _file(self, vector_id: str, name: str) -> bytes | None:
        path = self._folder / "cases" / vector_id / name
        if len(PurePosixPath(name).parts) != 1 or name in ("..", "."):
            self._faults.append(f"{vector_id}: {name!r} is no name of a file in its folder")
            return None
        try:
            if not path.resolve().is_relative_to(self._folder.resolve()):
                self._faults.append(f"{vector_id}: {name} leads out of the corpus")
                return None
            return _read(path, RECORD_BYTES_MAX)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            self._faults.append(f"{vector_id}: {name} cannot be read: {why}")
            return None

    def _compare_folders(self, known: set[str]) -> None:
        """Name the folders in ``cases`` that are in no vector: they would be judged by nobody."""
        if self._faults:
            return
        for path in sorted((self._folder / "cases").iterdir()):
            if path.is_dir() and path.name not in known:
                self._faults.append(f"cases/{path.name} is in no vector")


def _read(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise ValueError(f"larger than {bytes_max} bytes")
    return data


def _unique(pairs: list[tuple[str, Json]]) -> Members:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member name is there twice")
    return members


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _shown(value: Json) -> str:
    return f"{value!r:.80}" if value is None or isinstance(value, str) else f"{value!s:.80}"
