"""What a server process is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kernelarc.strategies.plateau import PlateauPolicy


@dataclass(frozen=True)
class ServerSettings:
    """Settings of one server process; several processes may share ``database``."""

    database: Path
    """SQLite file of the archive; created when missing."""
    home: Path
    """Folder of the guard: secret key, lock files, scratch."""
    device: str = "cpu"
    isolation: Literal["full", "reduced", "none"] = "reduced"
    """Least sandbox level below which nothing is judged."""
    board_cap: int | None = None
    """How many insights of a problem an agent may see; ``None``: all."""
    plateau: PlateauPolicy = field(default_factory=PlateauPolicy)
