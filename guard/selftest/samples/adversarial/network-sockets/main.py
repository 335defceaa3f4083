"""Sends its inputs to another host.

Where a byte leaves, it spoils its answer, so passing means that none did.
"""

import socket

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    for attempt in (
        lambda: socket.create_connection(("127.0.0.1", 22), 1),
        lambda: socket.create_connection(("192.0.2.1", 443), 1),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
        lambda: socket.getaddrinfo("example.org", 443),
    ):
        try:
            attempt()
        except OSError:
            continue
        y.fill_(1e9)
