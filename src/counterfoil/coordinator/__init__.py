"""Carries operations: the API, the drivers, the worker's identity."""
