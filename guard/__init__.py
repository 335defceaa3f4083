"""The guard: compiles, verifies and times candidates, and decides. No LLM in it.

* ``schema``      problems, solutions and results: pure data
* ``problems``    the built-in problem set
* ``screen``      static courtesy checks with good messages, never a wall
* ``sandbox``     the walls around a candidate, and their proof
* ``devices``     who may use a device, and when
* ``worker``      judge, zygote and runner: processes of their own, the only home of torch
* ``promotion``   the promotion rule, a pure function
* ``roofline``    physical floors
* ``pipeline``    what the server calls
"""
