"""Playbooks, similarity of candidates, and the rule that notices a plateau.

* ``catalogue``    the playbooks and guides as validated data
* ``similarity``   fingerprints of sources and how alike two of them are
* ``plateau``      who has to change the approach, decided from the history of attempts alone
"""
