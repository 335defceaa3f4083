-- The board. The full-text index on it is added by the migration's Python half.

CREATE TABLE insights (
    id INTEGER PRIMARY KEY,
    problem_id INTEGER NOT NULL REFERENCES problems (id),
    kind TEXT NOT NULL CHECK (kind IN ('success', 'failure', 'hypothesis', 'question')),
    strategy TEXT NOT NULL,
    text TEXT NOT NULL CHECK (length(text) BETWEEN 1 AND 2000),
    text_digest TEXT NOT NULL,              -- of the normalised text: finds repeated posts
    scope TEXT NOT NULL,                    -- search tokens for problem, category and device
    agent_id INTEGER NOT NULL REFERENCES agents (id),
    run_id INTEGER REFERENCES runs (id),
    category TEXT NOT NULL,
    device_name TEXT NOT NULL,
    verified INTEGER NOT NULL CHECK (verified IN (0, 1)),   -- derived from the guard's records
    created_at REAL NOT NULL,
    UNIQUE (agent_id, problem_id, kind, text_digest)
) STRICT;
CREATE INDEX insights_by_problem ON insights (problem_id, verified, id);
CREATE INDEX insights_by_category ON insights (category, device_name, verified, id);
CREATE INDEX insights_by_run ON insights (run_id, id);

CREATE TABLE insight_evidence (
    insight_id INTEGER NOT NULL REFERENCES insights (id),
    position INTEGER NOT NULL,
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    verdict_id INTEGER REFERENCES verdicts (id),
    benchmark_id INTEGER REFERENCES benchmarks (id),
    PRIMARY KEY (insight_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX insight_evidence_by_solution ON insight_evidence (solution_id, insight_id);
