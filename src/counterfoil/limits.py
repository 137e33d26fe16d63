"""Every bound, with its unit and its reason. Standard library only."""

from __future__ import annotations

# --- records -------------------------------------------------------------------------------------
RECORD_DEPTH_MAX = 128
"""Containers; the document is 1 (design page, uncertain-effect). Below any parser's own limit."""

INTEGER_MAX = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8785, I-JSON)."""

RECORD_BYTES_MAX = 64 * 1024 * 1024
"""One record. A trail of a million dispatches is no operation; this bounds a reader's memory."""

# --- operations ----------------------------------------------------------------------------------
OPERATION_ID_BYTES_MAX = 256
"""UTF-8 bytes of an operation id: fits an index entry and a line on a terminal."""

KEY_CHARACTERS_MAX = 255
"""A caller's own idempotency key: what the common HTTP APIs accept at most."""

ARGUMENTS_DEPTH_MAX = 64
"""Containers in an operation's arguments: canonicalising recurses."""

ARGUMENTS_BYTES_MAX = 1024 * 1024
"""Canonical bytes of an operation's arguments: they are stored with the operation."""

VALUE_BYTES_MAX = 256 * 1024
"""JSON bytes of a returned value that is kept; a larger one is `value_missing: too_large`."""

TEXT_CHARACTERS_MAX = 2048
"""Free text that comes from an owner or an exception before it is cut."""

# --- time ----------------------------------------------------------------------------------------
CALL_DEADLINE_S = 30.0
"""Seconds one call to an owner may take unless the effect says otherwise."""

LEASE_S = 60.0
"""Seconds a worker's right to dispatch lasts without a heartbeat."""

LEASE_MARGIN_S = 2.0
"""Seconds of lease that must be left beyond the call's deadline before the first byte goes out."""

PATIENCE_S = 10.0
"""Seconds that `perform` waits for an owner's answer before it returns `unknown`."""

# --- owners over HTTP ----------------------------------------------------------------------------
RESPONSE_BYTES_MAX = 1024 * 1024
"""Bytes read of one response, head included: an endless body is no reply."""
