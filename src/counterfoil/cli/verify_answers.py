"""What ``counterfoil verify`` says of evidence: a batch of lines into text and what it comes to."""

from __future__ import annotations

from json import dumps

from counterfoil.evidence.opening import Form, Opened, open_evidence
from counterfoil.evidence.reasons import EvidenceRefused
from counterfoil.reader.checks import HELD
from counterfoil.reader.shown import escaped
from counterfoil.reader.verdict import Malformed, Verdict, judge_briefly, judge_bytes
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from counterfoil.cli.verify_inputs import Batch
    from counterfoil.evidence.keyring import Keyring
    from counterfoil.evidence.statement import Chain
    from counterfoil.record.instants import Instant


BARE = Opened(Form.RECORD, b"")
"""What is said of a record that is not signed; its bytes are not kept."""


class Asked(Value):
    """How evidence is judged, and how the answers are said.

    ``keyring``, ``outside_time`` and ``chain`` are those of ``open_evidence``.
    """

    as_json: bool = False
    explain: bool = False
    strict: bool = False
    keyring: Keyring | None = None
    outside_time: Instant | None = None
    chain: Chain | None = None


class Answers(Value):
    """The answers to a batch as text, and what the exit code needs to know of them."""

    text: str
    denied: bool
    unusable: bool


class Answerer:
    """Opens, judges and answers, batch by batch."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._judge = judge_bytes if asked.explain else judge_briefly
        self._usual: dict[str, str] = {}

    def answer(self, batch: Batch) -> Answers:
        """Return the answer to every line of a batch, in order."""
        asked, usual = self._asked, self._usual
        place = None if batch.path is None else f'{{"path": {dumps(_carried(batch.path))}, "line": '
        said: list[str] = []
        denied = unusable = False
        for number, line in enumerate(batch.lines, batch.first):
            answer, opened = self._judged(line)
            if opened is BARE and isinstance(answer, Verdict) and answer.record is None:
                # A plain record: a text for each outcome, once made, answers them all.
                members = usual.get(answer.explanation)
                if members is None and asked.as_json and answer.reason == HELD:
                    members = dumps({**answer.as_json(), **BARE.as_json()})[1:] + "\n"
                    usual[answer.explanation] = members
                if members is not None and place is not None:
                    said.append(f"{place}{number}, {members}")
                    continue
            if not isinstance(answer, Verdict):
                unusable = True
            elif answer.reason != HELD or (asked.strict and answer.advisories):
                denied = True
            said.append(self._said(answer, opened, batch.path, number))
        return Answers("".join(said), denied, unusable)

    def _judged(self, line: bytes) -> tuple[Verdict | Malformed | EvidenceRefused, Opened | None]:
        """Return the answer, and what was opened, ``BARE`` for a record that came as it is."""
        asked = self._asked
        answer = self._judge(line) if asked.keyring is None else None
        if isinstance(answer, Verdict) and answer.reason == HELD:
            return answer, BARE  # a Statement or an envelope is denied: it has no contractId
        opened = open_evidence(
            line, asked.keyring, outside_time=asked.outside_time, chain=asked.chain
        )
        if isinstance(opened, EvidenceRefused):
            return opened, None
        if opened.form is Form.RECORD and answer is not None:
            return answer, BARE
        return self._judge(opened.record), opened

    def _said(
        self,
        answer: Verdict | Malformed | EvidenceRefused,
        opened: Opened | None,
        path: str | None,
        line: int,
    ) -> str:
        if self._asked.as_json:
            return self._as_json(answer, opened, path, line)
        place = "" if path is None else f"{escaped(path)}:{line}: "
        text = f"{place}{_sentence(answer)}"
        if opened is not None and opened is not BARE:
            text += f" [{opened.authentic}; complete: {opened.complete}]"
        text += "\n"
        if self._asked.explain and isinstance(answer, Verdict) and opened is not None:
            text += _explanation(answer, opened)
        return text

    def _as_json(
        self,
        answer: Verdict | Malformed | EvidenceRefused,
        opened: Opened | None,
        path: str | None,
        line: int,
    ) -> str:
        values = answer.as_json()
        if path is not None:
            if isinstance(answer, Malformed):
                # Beside the file's path, the JSON Pointer goes by its own name.
                values["pointer"] = values.pop("path")
            values = {"path": _carried(path), "line": line, **values}
        if opened is not None and (isinstance(answer, Verdict) or opened is not BARE):
            values.update(opened.as_json())
        if self._asked.explain and isinstance(answer, Verdict) and answer.record is not None:
            from counterfoil.reader.timeline import timeline

            values["timeline"] = [moment.as_json() for moment in timeline(answer.record)]
        return dumps(values) + "\n"


def _sentence(answer: Verdict | Malformed | EvidenceRefused) -> str:
    if isinstance(answer, EvidenceRefused):
        return f"refused {answer.reason}: {escaped(answer.detail)}"
    if isinstance(answer, Malformed):
        return f"malformed {escaped(answer.path) or 'document'}: {escaped(answer.detail)}"
    codes = ", ".join(advisory.code for advisory in answer.advisories)
    advisories = f" (advisories: {codes})" if codes else ""
    return f"{answer.decision.value} {answer.reason}: {answer.explanation}{advisories}"


def _explanation(verdict: Verdict, opened: Opened) -> str:
    lines = [
        f"  authentic: {opened.authentic}",
        f"  consistent: {'yes' if verdict.reason == HELD else 'no, ' + verdict.reason}",
        f"  complete: {opened.complete}",
    ]
    lines += [f"  about {member}" for member in verdict.members]
    for advisory in verdict.advisories:
        lines.append(f"  advisory {advisory.code}: {advisory.detail}")
        lines.append(f"    about {', '.join(advisory.members)}")
    if verdict.record is not None:
        from counterfoil.reader.timeline import timeline

        lines += [
            f"  {moment.at}  {moment.text}  {moment.member}" for moment in timeline(verdict.record)
        ]
    return "".join(line + "\n" for line in lines)


def _carried(text: str) -> str:
    """Return a file's name as text that JSON can carry: bytes that are no UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
