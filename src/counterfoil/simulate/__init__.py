"""Searches what can happen to one operation, with the real protocol in an owner's worst hands."""
