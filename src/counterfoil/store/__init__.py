"""Durable operations: one append-only log and rows derived from it, on several engines."""
