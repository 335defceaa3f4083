"""Opens what it should not be able to read.

Where it can, it spoils its answer, so passing means that nothing could be read.
"""

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    for attempt in (
        lambda: open("/etc/shadow").read(),
        lambda: open("/etc/passwd").read(),
        lambda: open("/proc/1/environ", "rb").read(),
        lambda: open("/proc/1/mem", "rb").read(),
    ):
        try:
            attempt()
        except OSError:
            continue
        y.fill_(1e9)
