"""What a user's module looks like to `counterfoil work --app fleet_app`: it declares the effect."""

from __future__ import annotations

import json
import os

from fleet_worker import declare

change = declare(
    os.environ["COUNTERFOIL_FLEET_OWNER"], json.loads(os.environ["COUNTERFOIL_FLEET_PROMISES"])
)
