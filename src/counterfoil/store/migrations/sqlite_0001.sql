-- The log is the truth; the other tables are derived from it, or say who may send.
CREATE TABLE store (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    store_id TEXT NOT NULL,
    least_reader INTEGER NOT NULL,
    least_writer INTEGER NOT NULL,
    token_base INTEGER NOT NULL,
    suspect TEXT  -- why operations may have been forgotten; NULL where none may
) STRICT;

-- Gaps that a person took note of, and on what evidence.
CREATE TABLE gaps (
    at_us INTEGER NOT NULL,
    suspect TEXT NOT NULL,
    accepted_by TEXT NOT NULL,
    evidence TEXT NOT NULL
) STRICT;

CREATE TABLE operations (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    tenant TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    action TEXT NOT NULL,
    key TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    held TEXT,
    opened_at_us INTEGER NOT NULL,
    changed_at_us INTEGER NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (namespace, tenant, operation_id),
    UNIQUE (owner, key)  -- one key, one operation; and an id lost from the other index shows here
) STRICT;

CREATE INDEX operations_unsettled ON operations (namespace, changed_at_us)
    WHERE status IN ('unknown', 'disputed');

-- A mission's head is one row: its fold is serial. The snapshot is the state after snapshot_n
-- lines; line snapshot_n of the log says its digest.
CREATE TABLE missions (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    mission_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    snapshot_n INTEGER,
    snapshot BLOB,
    UNIQUE (namespace, mission_id)
) STRICT;

-- Operations at rest that have left a mission's live state, and the approvals that left with them.
CREATE TABLE missions_left (
    mission INTEGER NOT NULL REFERENCES missions (id),
    operation_id TEXT NOT NULL,
    n INTEGER NOT NULL,
    body BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (mission, operation_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE missions_left_approvals (
    mission INTEGER NOT NULL REFERENCES missions (id),
    approval_id TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    PRIMARY KEY (mission, approval_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE log (
    seq INTEGER PRIMARY KEY,
    operation INTEGER REFERENCES operations (id),
    mission INTEGER REFERENCES missions (id),
    n INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    worker TEXT NOT NULL,
    token INTEGER,
    digest BLOB NOT NULL,
    payload TEXT,
    chained BLOB NOT NULL,
    UNIQUE (operation, n),
    CHECK ((operation IS NULL) <> (mission IS NULL))  -- each event is in one stream
) STRICT;

CREATE UNIQUE INDEX log_missions ON log (mission, n) WHERE mission IS NOT NULL;

-- (owner, effect id) is one operation's own: a second one that finds it is parked.
CREATE TABLE claims (
    owner TEXT NOT NULL,
    effect_id TEXT NOT NULL,
    operation INTEGER NOT NULL REFERENCES operations (id),
    PRIMARY KEY (owner, effect_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
    worker TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    lock TEXT,
    pid INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
