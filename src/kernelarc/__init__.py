"""KernelArc: several agents improve one GPU kernel; a deterministic guard decides.

Where things are (each folder is one layer, imports point downwards only):

* ``kernelarc.cli``         command line and composition root; may import everything
* ``kernelarc.clients``     MCP clients: session, orchestrator, agents, report
* ``kernelarc.server``      the MCP server: tools, jobs, resources, prompts
* ``kernelarc.strategies``  playbooks and the plateau rule
* ``kernelarc.memory``      the board and the archive (SQLite)
* ``kernelarc.guard``       schema, sandbox, judge, promotion rule
"""

from kernelarc._version import __version__

__all__ = ["__version__"]
