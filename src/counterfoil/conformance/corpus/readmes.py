"""The READMEs of the shipped corpora: what a pass establishes, and what not."""

from __future__ import annotations

CORE = """\
# vectors-uncertain-effect

Trails of one external operation whose reply may have been lost (`uncertain-effect/v1`), each with
the answer that a reader owes it. The controls are safe and must be allowed; every denial is one
edit away from the control that it names as its `parent`, and fails no check before the one named.

    counterfoil corpus --corpus vectors-uncertain-effect
    counterfoil corpus --corpus vectors-uncertain-effect --verifier './my-reader'

A reader is run as `my-reader record.json --json`. It prints one JSON object with `decision` and
`reason`, and exits 0 for `allow` and 1 for `deny`.

## What a pass establishes

The reader allows the safe trails and denies each unsafe one for the reason that the contract puts
first, wherever the contract's words leave one reading. With a check left out, some case fails.

## What a pass does not establish

- That the reader is right where the contract leaves a choice: at the ends of leases and retention
  windows, at equal times, at answers under another key. No case stands there.
- That it survives malformed input, or compares times exactly: see `vectors-uncertain-effect-hard`.
- That any trail tells the truth. A reader judges what a record says, not what happened.

## Layout

`MANIFEST.json` lists the cases in order: `files` holds the sha256 of each, and `corpusDigest` that
of the list. `edit` says what was done to the parent, and `scenario` names the situation in which a
runtime leaves such a trail. All of it is written by a program; the digests find edits by hand.
"""

HARD = """\
# vectors-uncertain-effect-hard

What `vectors-uncertain-effect` leaves out: bytes that are no record, times that differ in the ninth
digit or in their offset, attempts out of order, two keys, notices that tempt, tokens as large as
JSON carries. The published contract is silent on some of it, so a reader of that contract alone
may honestly differ here; `counterfoil verify` answers as this corpus says.

    counterfoil corpus --corpus vectors-uncertain-effect-hard --verifier './my-reader'

A reader is run as `my-reader record.json --json`: exit 0 for `allow`, 1 for `deny`. Where
`expected.decision` is `malformed` it passes with exit 2 and no decision: nothing was judged. No
one answer is due in half of the cases, so a reader that does not look cannot score well.

## What a pass establishes

The reader tells a record from what only resembles one, compares times and numbers exactly as they
are written, orders by time and not by place, and lets only the owner's answers settle anything.

## What a pass does not establish

- That the reader survives every malformed input: these are one or two of each kind.
- That it takes one side where the contract leaves a choice: at the ends of leases and windows, at
  equal times, at a second that is 60. No case stands there.
- That any trail tells the truth. A reader judges what a record says, not what happened.

## Layout

As in the other corpus. `edit` is one phrase; the bytes may differ from the parent's in more than
one place where one fact needs it. When a reader is judged, ids inside are respelled letter for
letter and digit for digit, so that what makes a case stays as it is.
"""
