"""The click group: loads a command's module on first use and turns errors into one clear line."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

import click

from counterfoil.errors import CounterfoilError

if TYPE_CHECKING:
    from collections.abc import Mapping

EPILOG = """\b
Exit codes:
  0  done, allowed, all passed
  1  denied, refused, some failed
  2  input that cannot be used; nothing was judged or sent
  3  a database, file or service failed
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        super().__init__(
            name="counterfoil",
            help="Carry one external operation to at most one effect, and judge the trail it left.",
            epilog=EPILOG,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command, loaded or not."""
        del ctx
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or None for a name that is not one."""
        del ctx
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        found: click.Command = importlib.import_module(module).command
        return found


def run_click(modules: Mapping[str, str]) -> int:
    """Run the click group on ``sys.argv``; return the exit code."""
    group = LazyGroup(modules)
    group = click.version_option(package_name="counterfoil", prog_name="counterfoil")(group)
    try:
        code = group.main(prog_name="counterfoil", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.Abort:
        print("interrupted", file=sys.stderr)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CounterfoilError as error:
        print(f"counterfoil: {error}", file=sys.stderr)
        _drop_output()
        return error.exit_code
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as error:
        print(f"counterfoil: standard output: {error.strerror}; mend that", file=sys.stderr)
        _drop_output()
        return 3
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """What is still buffered has nowhere to go; Python would complain when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
