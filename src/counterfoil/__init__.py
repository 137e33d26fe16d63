"""Counterfoil: carry one external operation to at most one effect, and keep the trail."""
