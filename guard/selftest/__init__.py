"""The guard's own trial: adversarial and honest samples, judged by the real guard on this host.

* ``sample``   a folder of ``samples/`` as a model: what is expected, and the solution
* ``suite``    runs samples against a ``Guard`` and yields one row each
* ``remains``  what a sample left behind: processes, files, a changed judge
* ``tally``    the rows counted: false accepts, false rejects, skipped
"""
