"""Version of the guard's rules.

Bump it with every change that can alter a verdict: stored verdicts of another guard
version are never served from the cache and never make a leader.
"""

GUARD_VERSION = "4"
