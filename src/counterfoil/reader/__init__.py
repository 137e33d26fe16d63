"""Judges a record: is the trail consistent with at most one effect? Pure; knows ``record`` only."""
