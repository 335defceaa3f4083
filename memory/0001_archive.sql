-- The archive: what was submitted, what the guard said, who asked, what is still to be done.
-- Rows are only ever added, except for the state of runs, agents, jobs and instances.

CREATE TABLE problems (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    title TEXT NOT NULL,
    category TEXT NOT NULL,
    registered_at REAL NOT NULL,
    UNIQUE (name, digest)
) STRICT;

-- The latest registration of a name is its current version, also when a change is taken back.
CREATE TABLE registrations (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    problem_id INTEGER NOT NULL REFERENCES problems (id),
    registered_at REAL NOT NULL
) STRICT;
CREATE INDEX registrations_by_name ON registrations (name, id);

CREATE TABLE sources (
    digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
    text TEXT NOT NULL
) STRICT;

CREATE TABLE solutions (
    id TEXT PRIMARY KEY CHECK (length(id) = 32),
    problem TEXT NOT NULL,
    language TEXT NOT NULL,
    entry_point TEXT NOT NULL,
    document TEXT NOT NULL CHECK (json_valid(document)),
    created_at REAL NOT NULL
) STRICT;

CREATE TABLE solution_sources (
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    position INTEGER NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL REFERENCES sources (digest),
    PRIMARY KEY (solution_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    spec TEXT NOT NULL CHECK (json_valid(spec)),
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at REAL NOT NULL,
    ended_at REAL
) STRICT;

CREATE TABLE agents (
    id INTEGER PRIMARY KEY,
    run_id INTEGER REFERENCES runs (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    strategy TEXT,
    token_digest TEXT UNIQUE CHECK (length(token_digest) = 64),
    state TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (coalesce(run_id, 0), name);

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run_id INTEGER REFERENCES runs (id),
    agent_id INTEGER REFERENCES agents (id),
    kind TEXT NOT NULL,
    payload TEXT NOT NULL CHECK (json_valid(payload)),
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX events_by_run ON events (run_id, id);

CREATE TABLE submissions (
    id INTEGER PRIMARY KEY,
    run_id INTEGER REFERENCES runs (id),
    agent_id INTEGER NOT NULL REFERENCES agents (id),
    problem_id INTEGER NOT NULL REFERENCES problems (id),
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    strategy TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX submissions_by_problem ON submissions (problem_id, id);
CREATE INDEX submissions_by_agent ON submissions (agent_id, problem_id, id);
CREATE INDEX submissions_by_run ON submissions (run_id, id);
CREATE INDEX submissions_by_solution ON submissions (solution_id, problem_id, id);

CREATE TABLE submission_parents (
    submission_id INTEGER NOT NULL REFERENCES submissions (id),
    position INTEGER NOT NULL,
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    PRIMARY KEY (submission_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdicts (
    id INTEGER PRIMARY KEY,
    problem_id INTEGER NOT NULL REFERENCES problems (id),
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    guard_version TEXT NOT NULL,
    environment_key TEXT NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body)),
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX verdicts_by_solution
    ON verdicts (solution_id, problem_id, guard_version, environment_key, id);

CREATE TABLE benchmarks (
    id INTEGER PRIMARY KEY,
    problem_id INTEGER NOT NULL REFERENCES problems (id),
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    leader_id TEXT NOT NULL,
    device_name TEXT NOT NULL,
    guard_version TEXT NOT NULL,
    environment_key TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status TEXT NOT NULL,
    speedup REAL,
    speedup_over_reference REAL,
    latency_us REAL,
    body TEXT NOT NULL CHECK (json_valid(body)),
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX benchmarks_by_solution ON benchmarks (solution_id, problem_id, id);
CREATE INDEX benchmarks_by_device ON benchmarks (problem_id, device_name, id);

CREATE TABLE promotions (
    id INTEGER PRIMARY KEY,
    problem_id INTEGER NOT NULL REFERENCES problems (id),
    device_name TEXT NOT NULL,
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    previous_id TEXT REFERENCES solutions (id),
    benchmark_id INTEGER NOT NULL UNIQUE REFERENCES benchmarks (id),
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX promotions_by_device ON promotions (problem_id, device_name, id);
CREATE INDEX promotions_by_solution ON promotions (solution_id, problem_id);

CREATE TABLE instances (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused: a lock file names one process
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started_at REAL NOT NULL
) STRICT;

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    problem_id INTEGER NOT NULL REFERENCES problems (id),
    solution_id TEXT NOT NULL REFERENCES solutions (id),
    agent_id INTEGER NOT NULL REFERENCES agents (id),
    device TEXT NOT NULL,
    guard_key TEXT NOT NULL,
    params TEXT NOT NULL CHECK (json_valid(params)),
    instance_id INTEGER REFERENCES instances (id),
    turn INTEGER,                           -- counts claims; orders service without a clock
    interruptions INTEGER NOT NULL DEFAULT 0,
    repeatable INTEGER NOT NULL DEFAULT 0,  -- done, but nothing was decided: an equal job may run
    result_id INTEGER,                      -- row of verdicts or benchmarks, by kind
    error TEXT,
    created_at REAL NOT NULL,
    started_at REAL,
    finished_at REAL,
    CHECK ((state = 'running') = (instance_id IS NOT NULL)),
    CHECK ((state = 'done') = (result_id IS NOT NULL)),
    CHECK ((state = 'failed') = (error IS NOT NULL))
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, device, id);
CREATE INDEX jobs_by_content ON jobs (solution_id, problem_id, kind, id);
CREATE INDEX jobs_by_turn ON jobs (device, turn);
CREATE INDEX jobs_by_agent_turn ON jobs (device, agent_id, turn);
