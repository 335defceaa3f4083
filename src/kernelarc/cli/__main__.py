"""``python -m kernelarc.cli``: how the orchestrator starts its server."""

from kernelarc.cli import main

main()
