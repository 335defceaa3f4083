"""Every query that is more than a plain insert. Parameters are named; columns are listed.

Dynamic filters are built by ``where`` from the fixed conditions below, never from a caller's
text.
"""

from __future__ import annotations

from collections.abc import Iterable


def where(select: str, conditions: Iterable[str], order: str = "") -> str:
    """``select`` where all ``conditions`` hold, then ``order``."""
    return f"{select} WHERE {' AND '.join(conditions)} {order}"


def merged(parts: Iterable[str], order: str) -> str:
    """All rows of ``parts``, in one order."""
    return f"{' UNION ALL '.join(parts)} {order}"


# Catalogue -----------------------------------------------------------------------------------

CURRENT_PROBLEM = """
SELECT p.id, p.name, p.digest, p.title, p.category, p.registered_at
FROM registrations r JOIN problems p ON p.id = r.problem_id
WHERE r.name = :name ORDER BY r.id DESC LIMIT 1
"""

CURRENT_PROBLEMS = """
SELECT p.id, p.name, p.digest, p.title, p.category, p.registered_at
FROM registrations r JOIN problems p ON p.id = r.problem_id
WHERE r.id IN (SELECT max(id) FROM registrations GROUP BY name) ORDER BY p.name
"""

PROBLEM_VERSION = "SELECT id FROM problems WHERE name = :name AND digest = :digest"

SOLUTIONS_BY_PREFIX = """
SELECT id FROM solutions WHERE id >= :prefix AND id < :prefix || 'g' ORDER BY id LIMIT 2
"""

SOLUTION = """
SELECT id, problem, language, entry_point, document, created_at FROM solutions WHERE id = :id
"""

SOLUTION_SOURCES = """
SELECT o.path, o.digest, t.text FROM solution_sources o JOIN sources t ON t.digest = o.digest
WHERE o.solution_id = :id ORDER BY o.position
"""

SOURCE = "SELECT text FROM sources WHERE digest = :digest"

SUBMISSION = """
SELECT s.id, s.run_id, s.agent_id, p.name AS problem, s.solution_id, s.strategy, s.note,
    s.created_at,
    (SELECT json_group_array(parent) FROM (
        SELECT q.solution_id AS parent FROM submission_parents q
        WHERE q.submission_id = s.id ORDER BY q.position)) AS parents
FROM submissions s JOIN problems p ON p.id = s.problem_id
"""

SAME_SUBMISSION = """
SELECT id FROM submissions
WHERE agent_id = :agent AND problem_id = :problem AND solution_id = :solution ORDER BY id LIMIT 1
"""

# Results -------------------------------------------------------------------------------------

VERDICT = "SELECT id, body, created_at FROM verdicts"

BENCHMARK = "SELECT id, device_name, body, created_at FROM benchmarks"

NEWEST_VERDICT = """
SELECT id, body FROM verdicts
WHERE solution_id = :solution_id AND problem_id = :problem_id
    AND guard_version = :guard_version AND environment_key = :environment_key
ORDER BY id DESC LIMIT 1
"""

# Leaders -------------------------------------------------------------------------------------

LEADER = """
SELECT solution_id FROM promotions
WHERE problem_id = :problem AND device_name = :device ORDER BY id DESC LIMIT 1
"""

ENVIRONMENT = "SELECT document FROM environments WHERE key = :key"

PROMOTION = """
SELECT m.id, p.name AS problem, m.device_name, m.solution_id, m.previous_id, m.benchmark_id,
    s.agent_id, s.run_id, s.strategy, b.speedup, b.speedup_over_reference, b.latency_us,
    m.created_at
FROM promotions m
JOIN problems p ON p.id = m.problem_id
JOIN benchmarks b ON b.id = m.benchmark_id
LEFT JOIN submissions s ON s.id = (
    SELECT min(f.id) FROM submissions f
    WHERE f.solution_id = m.solution_id AND f.problem_id = m.problem_id)
"""

PROMOTABLE = """
SELECT b.outcome, b.solution_id, b.problem_id, b.device_name,
    coalesce((
        SELECT v.status FROM verdicts v
        WHERE v.solution_id = b.solution_id AND v.problem_id = b.problem_id
            AND v.guard_version = b.guard_version AND v.environment_key = b.environment_key
        ORDER BY v.id DESC LIMIT 1), '') = 'PASSED' AS verified,
    EXISTS (SELECT 1 FROM promotions m WHERE m.benchmark_id = b.id) AS used
FROM benchmarks b WHERE b.id = :benchmark
"""

BACKUPS = """
SELECT b.solution_id, b.id AS benchmark_id, b.leader_id, b.outcome, b.speedup, b.latency_us,
    o.language, s.strategy, b.created_at
FROM benchmarks b
JOIN solutions o ON o.id = b.solution_id
LEFT JOIN submissions s ON s.id = (
    SELECT min(f.id) FROM submissions f
    WHERE f.solution_id = b.solution_id AND f.problem_id = b.problem_id)
WHERE b.solution_id IS NOT :leader AND b.outcome != 'REJECTED' AND (
    SELECT v.status FROM verdicts v
    WHERE v.solution_id = b.solution_id AND v.problem_id = b.problem_id
    ORDER BY v.id DESC LIMIT 1) = 'PASSED' AND b.id IN (
    SELECT max(id) FROM benchmarks
    WHERE problem_id = :problem AND device_name = :device AND outcome != 'INCONCLUSIVE'
    GROUP BY solution_id)
"""

GAINS = """
SELECT m.solution_id, b.leader_id, b.speedup
FROM promotions m JOIN benchmarks b ON b.id = m.benchmark_id
WHERE m.problem_id = :problem AND m.device_name = :device ORDER BY m.id
"""

LINEAGE = """
WITH RECURSIVE ancestors (solution_id, depth) AS (
    SELECT :solution, 0
    UNION
    SELECT q.solution_id, a.depth + 1
    FROM ancestors a
    JOIN submissions s ON s.solution_id = a.solution_id AND s.problem_id = :problem
    JOIN submission_parents q ON q.submission_id = s.id
    WHERE a.depth < :deepest)
SELECT a.solution_id, min(a.depth) AS depth, s.agent_id, s.strategy, o.created_at,
    (SELECT json_group_array(DISTINCT q.solution_id)
     FROM submissions t JOIN submission_parents q ON q.submission_id = t.id
     WHERE t.solution_id = a.solution_id AND t.problem_id = :problem) AS parents,
    (SELECT v.status FROM verdicts v
     WHERE v.solution_id = a.solution_id AND v.problem_id = :problem
     ORDER BY v.id DESC LIMIT 1) AS status,
    (SELECT b.outcome FROM benchmarks b
     WHERE b.solution_id = a.solution_id AND b.problem_id = :problem
     ORDER BY b.id DESC LIMIT 1) AS outcome
FROM ancestors a
JOIN solutions o ON o.id = a.solution_id
LEFT JOIN submissions s ON s.id = (
    SELECT min(f.id) FROM submissions f
    WHERE f.solution_id = a.solution_id AND f.problem_id = :problem)
GROUP BY a.solution_id ORDER BY depth, o.created_at DESC, a.solution_id
"""

# Board ---------------------------------------------------------------------------------------

INSIGHT = """
SELECT i.id, p.name AS problem, i.kind, i.strategy, i.text, i.verified, i.agent_id,
    a.name AS agent_name, i.run_id, i.device_name, i.created_at,
    (SELECT json_group_array(record) FROM (
        SELECT coalesce('b_' || e.benchmark_id, 'v_' || e.verdict_id, e.solution_id) AS record
        FROM insight_evidence e WHERE e.insight_id = i.id ORDER BY e.position)) AS evidence
FROM insights i
JOIN problems p ON p.id = i.problem_id
JOIN agents a ON a.id = i.agent_id
"""

IN_IDS = "i.id IN (SELECT value FROM json_each(:ids))"

SAME_INSIGHT = """
SELECT id FROM insights
WHERE agent_id = :agent AND problem_id = :problem AND kind = :kind AND text_digest = :digest
"""

REVERIFY = """
UPDATE insights AS i SET verified = 1 - i.verified
WHERE i.id IN (SELECT value FROM json_each(:ids)) AND i.verified != (
    i.kind IN ('success', 'failure') AND EXISTS (
        SELECT 1 FROM insight_evidence e
        WHERE e.insight_id = i.id AND (
            e.benchmark_id IS NULL AND EXISTS (
                SELECT 1 FROM verdicts v
                WHERE v.solution_id = e.solution_id AND v.problem_id = i.problem_id
                    AND (e.verdict_id IS NULL OR v.id = e.verdict_id)
                    AND (i.kind = 'failure' OR v.status = 'PASSED'))
            OR e.verdict_id IS NULL AND EXISTS (
                SELECT 1 FROM benchmarks b
                WHERE b.solution_id = e.solution_id AND b.problem_id = i.problem_id
                    AND (e.benchmark_id IS NULL OR b.id = e.benchmark_id)
                    AND (i.kind = 'failure' OR b.outcome IN ('PROMOTED', 'BACKUP'))))
        AND (i.kind = 'failure' OR coalesce((
            SELECT r.outcome FROM benchmarks r
            WHERE r.solution_id = e.solution_id AND r.problem_id = i.problem_id
                AND r.outcome != 'INCONCLUSIVE'
            ORDER BY r.id DESC LIMIT 1), '') != 'REJECTED')))
"""
"""Brings ``verified`` of the given insights up to date. A success needs a passed verdict or a
benchmark that kept the solution, and none that rejected it since; a failure any record."""

CITING = "SELECT insight_id FROM insight_evidence WHERE solution_id = :solution"

OWN_INSIGHTS = "i.problem_id = :problem"

RELATED_INSIGHTS = "i.category = :category AND i.device_name = :device AND i.problem_id != :problem"

# One part of the board: one scope, verified or not. Each is read backwards from an index, so
# that SQLite merges the parts without sorting them.
BOARD_PART = "SELECT i.id AS id, i.verified AS verified FROM insights i"

BOARD_PAGE_ORDER = "ORDER BY verified DESC, id DESC LIMIT :limit"

BOARD_FLOOR_ORDER = "ORDER BY id DESC LIMIT 1 OFFSET :skip"

BOARD_MATCH_FLOOR = """
SELECT rowid FROM insights_fts WHERE insights_fts MATCH :match AND rowid BETWEEN :floor AND :top
ORDER BY rowid DESC LIMIT 1 OFFSET :skip
"""

BOARD_SEARCH = """
SELECT i.id AS id FROM insights_fts f JOIN insights i ON i.id = f.rowid
"""

# The third column holds scope tokens: they select, and must not weigh.
BOARD_SEARCH_ORDER = """
ORDER BY i.verified DESC, bm25(insights_fts, 1.0, 1.0, 0.0), i.id DESC LIMIT :limit OFFSET :skip
"""

NEWEST_INSIGHT = "SELECT coalesce(max(id), 0) FROM insights"

# Jobs ----------------------------------------------------------------------------------------

JOB = """
SELECT j.id, j.kind, j.state, p.name AS problem, j.solution_id, j.agent_id, j.device,
    j.guard_key, j.params, j.result_id, j.error, j.interruptions, j.created_at, j.started_at,
    j.finished_at
FROM jobs j JOIN problems p ON p.id = j.problem_id
"""

IS_UNFINISHED = "j.state IN ('queued', 'running')"

EQUAL_JOB = """
SELECT id FROM jobs
WHERE solution_id = :solution AND problem_id = :problem AND kind = :kind AND device = :device
    AND guard_key = :guard_key AND params = :params
    AND (state IN ('queued', 'running') OR NOT :force AND (
        state = 'done' AND NOT repeatable
        OR state = 'failed' AND interruptions >= :max_interruptions))
ORDER BY id DESC LIMIT 1
"""

QUEUE = """
SELECT j.id, j.agent_id, coalesce((
    SELECT max(t.turn) FROM jobs t WHERE t.device = j.device AND t.agent_id = j.agent_id), 0)
    AS last_turn
FROM jobs j WHERE j.device = :device AND j.state = 'queued' ORDER BY j.id
"""

CLAIM = """
UPDATE jobs SET state = 'running', instance_id = :instance, started_at = :now,
    turn = coalesce((SELECT max(turn) FROM jobs WHERE device = :device), 0) + 1
WHERE id = :id
"""

SETTLE = """
UPDATE jobs SET state = :state, instance_id = NULL, result_id = :result, error = :error,
    repeatable = :repeatable, finished_at = :now
WHERE id = :id
"""

REQUEUE = """
UPDATE jobs SET state = 'queued', instance_id = NULL, started_at = NULL,
    interruptions = interruptions + :interrupted
WHERE id = :id
"""

JOB_ORIGIN = """
SELECT a.id AS agent_id, a.run_id, j.problem_id, j.kind, p.name AS problem, j.solution_id
FROM jobs j JOIN agents a ON a.id = j.agent_id JOIN problems p ON p.id = j.problem_id
WHERE j.id = :id
"""

OWNER = "SELECT instance_id FROM jobs WHERE id = :id"

RUNNING_INSTANCES = "SELECT DISTINCT instance_id FROM jobs WHERE state = 'running'"

RUNNING_OF = (
    "SELECT id, interruptions FROM jobs WHERE state = 'running' AND instance_id = :instance"
)

# Runs ----------------------------------------------------------------------------------------

RUN = "SELECT id, spec, state, reason, started_at, ended_at FROM runs "

AGENT = "SELECT id, run_id, name, kind, strategy, state FROM agents "

AGENT_BY_TOKEN = AGENT + "WHERE token_digest = :digest"

AGENT_BY_NAME = AGENT + "WHERE coalesce(run_id, 0) = coalesce(:run, 0) AND name = :name"

AGENTS_OF_RUN = AGENT + "WHERE run_id IS :run ORDER BY id"

EVENT = "SELECT id, run_id, agent_id, kind, payload, created_at FROM events"

# Reports -------------------------------------------------------------------------------------

ATTEMPT = """
SELECT s.id, s.run_id, s.agent_id, a.name AS agent_name, p.name AS problem, s.solution_id,
    o.language, s.strategy, s.note, b.outcome, b.status AS benchmark_status, b.leader_id,
    b.speedup, b.latency_us, s.created_at,
    (SELECT v.status FROM verdicts v
     WHERE v.solution_id = s.solution_id AND v.problem_id = s.problem_id
     ORDER BY v.id DESC LIMIT 1) AS status,
    EXISTS (
        SELECT 1 FROM promotions m
        WHERE m.solution_id = s.solution_id AND m.problem_id = s.problem_id)
    AND NOT EXISTS (
        SELECT 1 FROM submissions f
        WHERE f.solution_id = s.solution_id AND f.problem_id = s.problem_id AND f.id < s.id)
    AS promoted,
    (SELECT json_group_array(digest) FROM (
        SELECT c.digest AS digest FROM solution_sources c
        WHERE c.solution_id = s.solution_id ORDER BY c.path)) AS source_digests
FROM submissions s
JOIN agents a ON a.id = s.agent_id
JOIN problems p ON p.id = s.problem_id
JOIN solutions o ON o.id = s.solution_id
LEFT JOIN benchmarks b ON b.id = (
    SELECT max(c.id) FROM benchmarks c
    WHERE c.solution_id = s.solution_id AND c.problem_id = s.problem_id)
"""

INSIGHTS_BY_STRATEGY = """
SELECT strategy, count(*) AS insights FROM insights WHERE problem_id = :problem GROUP BY strategy
"""
