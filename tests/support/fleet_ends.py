"""What each kind of owner promises, and how a take-over from an earlier sender ends there."""

from __future__ import annotations

LEASE_S = 60.0
PAST_THE_LEASE_S = 2 * LEASE_S

PROMISES: dict[str, dict[str, object]] = {
    "final_by_answer": {"final_by": "answer"},
    "settles_within": {"settles_within": "5s"},
    "neither": {},
    "deduplicates": {"deduplicates": True, "key_retention": "forever"},
}
ONLY_FINALITY = ("no", "on_send")  # what on_send learns from sends alone licenses nothing
FENCED = ("on_ask", "by_call", "by_lease")

STUCK = "sender_may_still_send"
UNFENCED_ENDS = {
    "final_by_answer": (STUCK, "committed"),
    "settles_within": (STUCK, "committed"),
    "neither": (STUCK, "absent_not_final"),
    "deduplicates": ("committed", "committed"),
}
FENCED_ENDS = dict.fromkeys(
    ("final_by_answer", "settles_within", "neither"), ("committed", "committed")
)
ENDS = {
    (how, owner): ends
    for fences, by_owner in ((ONLY_FINALITY, UNFENCED_ENDS), (FENCED, FENCED_ENDS))
    for how in fences
    for owner, ends in by_owner.items()
}
"""(fences, owner) -> how it ends while the first worker can still send, and once it cannot."""
