"""The real server with the suite's fixtures, without tokens, on a loopback port.

For the conformance suite only, which speaks HTTP and sends no headers of ours::

    python tests/conformance/server.py PORT
"""

import sys
import tempfile
from pathlib import Path

import anyio
import uvicorn

sys.path.insert(0, str(Path(__file__).parent))
from fixtures import add_fixtures

from kernelarc.server.app import build_server, configure_logging
from kernelarc.server.services import open_services
from kernelarc.server.settings import ServerSettings


async def main(port: int, folder: Path) -> None:
    """Serves until interrupted."""
    configure_logging()
    settings = ServerSettings(folder / "archive.sqlite", folder / "home", isolation="none")
    async with open_services(settings) as services:
        server = build_server(services)
        add_fixtures(server)
        config = uvicorn.Config(
            server.streamable_http_app(stateless_http=True),
            host="127.0.0.1",
            port=port,
            log_config=None,
            timeout_graceful_shutdown=1,
        )
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, int(sys.argv[1]), Path(folder))
