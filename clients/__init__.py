"""MCP clients: they know the server's tools and the guard's schema, nothing else.

* ``session``       one agent's connection, with retries
* ``orchestrator``  a team of agents on one server
* ``agents``        the kinds of agents
* ``live``          the view of a run in a terminal
* ``report``        the page of a run
"""
