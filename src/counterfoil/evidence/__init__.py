"""Signed trails: who said what a record says. Pure: bytes and keys in, values out.

A signature proves who said it, not that it is true (faults, signature rule 13): whether the trail
is consistent with at most one effect is the reader's to say, and it does not know this package.
"""
