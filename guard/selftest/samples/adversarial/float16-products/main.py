"""A float32 product by half-precision inputs."""


def run(a, b, c):
    c.copy_(a.half().float() @ b.half().float().T)
