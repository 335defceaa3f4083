"""The guard's worker processes: judge, zygote and runner.

Started by module name, never imported by the server: torch lives here and nowhere else.

* ``judge``     trusted; owns inputs, reference, clock and verdict
* ``zygote``    trusted; imported torch once, forks sandboxed processes, holds no secrets
* ``runner``    not trusted from the moment it loads the candidate
"""
