"""Version of the package; the guard has its own (``kernelarc.guard.version``)."""

__version__ = "0.1.0"
