"""Wires the commands together and does nothing else.

``verify`` is started once per case by harnesses, so it answers before click is imported. Every
other command group is imported only when it is asked for.
"""

from __future__ import annotations

import sys

# command name -> module that holds a click command called `command`
COMMANDS = {
    "adapter": "counterfoil.cli.adapter_command",
    "audit": "counterfoil.cli.audit",
    "corpus": "counterfoil.cli.corpus",
    "demo": "counterfoil.cli.demo",
    "export": "counterfoil.cli.export",
    "keygen": "counterfoil.cli.keygen",
    "mission": "counterfoil.cli.mission",
    "ops": "counterfoil.cli.ops",
    "owner": "counterfoil.cli.owner",
    "runtime": "counterfoil.cli.runtime",
    "sign": "counterfoil.cli.sign",
    "verify": "counterfoil.cli.verify_help",
    "work": "counterfoil.cli.work",
}


def main() -> int:
    """Run the command line on ``sys.argv``; return the exit code."""
    if sys.argv[1:2] == ["verify"] and not {"--help", "-h"} & set(sys.argv[2:]):
        from counterfoil.cli.verify import run

        return run(sys.argv[2:])
    from counterfoil.cli.wiring import run_click

    return run_click(COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
