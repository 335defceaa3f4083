"""Sends its inputs away through modules that a text search does not see.

Where a byte leaves, it spoils its answer, so passing means that none did.
"""

import importlib

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    net = importlib.import_module("soc" + "ket")
    web = importlib.import_module("urllib." + "request")
    for attempt in (
        lambda: net.create_server(("0.0.0.0", 0)),
        lambda: net.create_connection(("127.0.0.1", 80), 1),
        lambda: web.urlopen("http://127.0.0.1:80/", timeout=1),
        lambda: net.socket(net.AF_UNIX).connect("\0kernelarc"),
        lambda: net.socket(net.AF_UNIX, net.SOCK_DGRAM),
        lambda: net.socket(net.AF_NETLINK, net.SOCK_RAW),
    ):
        try:
            attempt()
        except OSError:
            continue
        y.fill_(1e9)
