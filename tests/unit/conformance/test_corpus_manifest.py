"""A corpus on disk is whole, or each of its faults is named."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from counterfoil.conformance.manifest import SHIPPED, BrokenCorpus, load_corpus, shipped_names
from counterfoil.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "vectors-uncertain-effect"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a corpus, as somebody else would have published it."""
    return shutil.copytree(SHIPPED / NAME, tmp_path / "published")


def rewrite(
    folder: Path, change: Callable[[dict[str, Any]], object], *, digest: bool = True
) -> None:
    """Change the manifest, and make its digest right again unless that is the point."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    change(manifest)
    if digest:
        text = json.dumps(manifest["vectors"], indent=2, sort_keys=True, ensure_ascii=True) + "\n"
        manifest["corpusDigest"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def faults(folder: Path) -> tuple[str, ...]:
    with pytest.raises(BrokenCorpus) as caught:
        load_corpus(folder)
    return caught.value.faults


def first(manifest: dict[str, Any]) -> dict[str, Any]:
    vector: dict[str, Any] = manifest["vectors"][0]
    return vector


def test_the_shipped_corpora_are_whole() -> None:
    assert shipped_names() == (NAME, f"{NAME}-hard")
    for name in shipped_names():
        assert load_corpus(SHIPPED / name).name == name


def test_the_manifest_is_laid_out_as_the_sister_corpora_are(folder: Path) -> None:
    text = (folder / "MANIFEST.json").read_text()
    manifest = json.loads(text)
    assert text == json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=True) + "\n"
    assert set(manifest) == {"contractId", "corpusDigest", "suite", "vectors", "verifierContract"}
    vector = manifest["vectors"][-1]
    assert set(vector) == {"id", "path", "files", "expected", "edit", "scenario", "parent"}
    assert vector["path"] == f"cases/{vector['id']}"


def test_a_published_folder_is_read_with_members_that_we_do_not_know(folder: Path) -> None:
    rewrite(folder, lambda manifest: first(manifest).update(summary="more"))
    assert len(load_corpus(folder).vectors) == len(load_corpus(SHIPPED / NAME).vectors)


def test_a_folder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no folder"):
        load_corpus(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.pop("suite"), "MANIFEST.json has no suite"),
        (lambda m: m.update(suite="other/v1"), "suite is 'other/v1', not 'uncertain-effect/v1'"),
        (lambda m: m.update(contractId=None), "contractId is None, not 'https:"),
        (lambda m: m.pop("verifierContract"), "MANIFEST.json has no verifierContract"),
        (lambda m: m.update(vectors=[]), "MANIFEST.json lists no vectors"),
        (lambda m: m.update(vectors={}), "MANIFEST.json lists no vectors"),
        (lambda m: m["vectors"].append(7), "is no object"),
        (lambda m: m["vectors"].append(first(m)), "the id is there twice"),
        (lambda m: first(m).update(id="../out"), "vector 0 has an id that names no folder"),
        (lambda m: first(m).update(path="../out"), "path is '../out', not 'cases/"),
        (lambda m: first(m).update(files={}), "files names no record.json"),
        (lambda m: first(m)["files"].update({"../x": "0" * 64}), "'../x' is no name of a file"),
        (lambda m: first(m)["files"].update({"x": "0" * 64}), "x cannot be read: No such file"),
        (lambda m: first(m)["files"].update({"record.json": "AB"}), "no sha256 of 64 hex digits"),
        (
            lambda m: first(m)["files"].update({"record.json": "0" * 64}),
            "the sha256 of record.json is another",
        ),
        (
            lambda m: first(m)["expected"].update(decision="maybe"),
            "the decision 'maybe' is none of allow, deny, malformed",
        ),
        (lambda m: first(m)["expected"].pop("reason"), "expected names no reason"),
        (lambda m: first(m).update(expected=None), "the decision None is none of"),
        (lambda m: m["vectors"].pop(0), "cases/timeout-reconciled-as-absent is in no vector"),
    ],
)
def test_a_fault_of_the_manifest_is_named(
    folder: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    rewrite(folder, change)
    assert any(says in fault for fault in faults(folder)), faults(folder)


def test_a_wrong_digest_of_the_whole_is_named(folder: Path) -> None:
    rewrite(folder, lambda manifest: manifest.update(corpusDigest="0" * 64), digest=False)
    [fault] = faults(folder)
    assert fault.startswith(f"MANIFEST.json: corpusDigest is '{'0' * 64}', not ")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"suite": 1, "suite": 1}', "\udcff", "[" * 9999])
def test_a_manifest_that_is_no_json_object_is_named(folder: Path, text: str) -> None:
    (folder / "MANIFEST.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert faults(folder)


def test_a_record_that_leads_out_of_the_folder_is_not_read(folder: Path, tmp_path: Path) -> None:
    record = folder / "cases" / "confirmed-at-once" / "record.json"
    outside = tmp_path / "outside.json"
    outside.write_bytes(record.read_bytes())
    record.unlink()
    record.symlink_to(outside)
    assert faults(folder) == ("confirmed-at-once: record.json leads out of the corpus",)


def test_every_fault_is_named_and_not_the_first_alone(folder: Path) -> None:
    (folder / "cases" / "confirmed-at-once" / "record.json").write_text("{}")
    (folder / "cases" / "refused-definitely" / "record.json").unlink()
    rewrite(folder, lambda manifest: first(manifest)["expected"].update(decision="maybe"))
    assert len(faults(folder)) == 3
