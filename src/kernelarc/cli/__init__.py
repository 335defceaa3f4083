"""The command line: composition root of everything else. It may import all; nothing imports it."""


def main() -> None:
    """Entry point of the ``kernelarc`` command."""
    from kernelarc.cli.app import app

    app()


__all__ = ["main"]
