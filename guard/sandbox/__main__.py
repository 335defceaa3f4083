"""``python -m kernelarc.guard.sandbox``: probe this host and write the result as JSON."""

from __future__ import annotations

import sys

from kernelarc.guard.sandbox.probe import probe_here

if __name__ == "__main__":
    sys.stdout.write(probe_here().model_dump_json())
