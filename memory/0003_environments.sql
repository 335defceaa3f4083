-- Where results were made; verdicts and benchmarks name the key.

CREATE TABLE environments (
    key TEXT PRIMARY KEY,
    document TEXT NOT NULL,                 -- Environment as JSON, as first reported
    created_at REAL NOT NULL
) STRICT;
