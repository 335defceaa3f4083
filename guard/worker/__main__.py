"""``python -m kernelarc.guard.worker judge SETTINGS_JSON`` or ``zygote FD``: start a worker.

Before anything heavy is imported, the process is tied to its parent: importing torch takes
seconds, and a parent that dies meanwhile must not leave it behind. The judge starts its zygote here
too, so that both import torch at the same time, and before the judge has seen any secret.
"""

from __future__ import annotations

import os
import sys

from kernelarc.guard.worker import hardening, host
from kernelarc.guard.worker.launch import start_zygote


def main(arguments: list[str]) -> int:
    """Run the worker that the first argument names."""
    hardening.end_with_parent()
    role, rest = arguments[0], arguments[1:]
    if role == "zygote":
        # Forking and confining must not disturb a timing: only the runner itself goes where
        # candidates run.
        os.sched_setaffinity(0, host.processors().reserved)
        from kernelarc.guard.worker import zygote

        return zygote.main(int(rest[0]))
    hardening.forbid_inspection()
    control = start_zygote()
    from kernelarc.guard.worker import judge

    return judge.main(rest[0], control)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
