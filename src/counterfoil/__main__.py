"""``python -m counterfoil``: the command line."""

import sys

from counterfoil.cli.main import main

sys.exit(main())
