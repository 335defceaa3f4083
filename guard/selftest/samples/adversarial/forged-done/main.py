"""Knows the protocol: reports its first batch as done before it did anything."""

import os
import struct
import time

import torch


FRAME = struct.Struct("<IIQQ")
MAGIC, DONE, FAILED = 0x4B415243, 3, 4


def say(kind, number):
    for fd in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                os.write(fd, FRAME.pack(MAGIC, kind, number, 1000))
        except OSError:
            pass


def run(x, weight, eps, y):
    say(DONE, 1)
    time.sleep(2)
