"""Loads the module that declares a user's effects, so that a command can carry them."""

from __future__ import annotations

import importlib
import sys

from counterfoil.errors import BadInput


def load(app: str) -> None:
    """Import ``module`` or ``module:name``; importing it registers its effects.

    Raises ``BadInput`` if it cannot be imported, or has no such name.
    """
    module_name, _, name = app.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` would, from the folder where one stands
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise BadInput(
            f"--app {app}: importing {module_name} raised {type(error).__name__}: {error}"
        ) from error
    if name and not hasattr(module, name):
        raise BadInput(f"--app {app}: module {module_name} has no {name!r}")
