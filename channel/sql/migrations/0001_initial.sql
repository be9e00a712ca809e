-- Schema 1. Times end in _ms: wall-clock milliseconds since 1970, for people to read.

CREATE TABLE channel (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,                     -- random, made once; part of every key
  created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE rooms (
  room_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  policy TEXT NOT NULL DEFAULT '',
  created_at_ms INTEGER NOT NULL
) STRICT;

-- One harness session, however many server processes serve it.
CREATE TABLE connections (
  connection_id INTEGER PRIMARY KEY,
  address TEXT NOT NULL UNIQUE,         -- the session's key; deliveries are given to it
  harness TEXT NOT NULL CHECK (harness IN ('claude', 'codex', 'other')),
  process TEXT NOT NULL,                -- identity of the harness's process
  server TEXT NOT NULL,                 -- identity of the newest server process that spoke for it
  session_id TEXT,                      -- Claude: the session that the process ran last
  thread_id TEXT,                       -- Codex
  codex_home TEXT,
  codex_sqlite_home TEXT,               -- where its queue is, if not in codex_home
  codex_path TEXT,
  codex_version TEXT,
  runs_exec INTEGER NOT NULL DEFAULT 0, -- 1: owned by `codex exec`, which would consume a row unread
  seen_at_ms INTEGER NOT NULL           -- its newest tool call
) STRICT;
CREATE INDEX connections_by_session ON connections (session_id) WHERE session_id IS NOT NULL;

-- One registration of a name in a room: its id is the role's term.
CREATE TABLE roles (
  role_id INTEGER PRIMARY KEY AUTOINCREMENT,
  room_id INTEGER NOT NULL REFERENCES rooms,
  name TEXT NOT NULL,
  connection_id INTEGER NOT NULL REFERENCES connections,
  joined_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  ended_by TEXT CHECK (ended_by IN ('left', 'taken_over')),
  heir_role_id INTEGER REFERENCES roles, -- taken over: the newest registration that its messages follow to
  CHECK ((ended_at_ms IS NULL) = (ended_by IS NULL))
) STRICT;
CREATE UNIQUE INDEX roles_held ON roles (room_id, name) WHERE ended_at_ms IS NULL;
CREATE UNIQUE INDEX roles_one_a_room ON roles (connection_id, room_id) WHERE ended_at_ms IS NULL;
CREATE INDEX roles_by_heir ON roles (heir_role_id) WHERE heir_role_id IS NOT NULL;
CREATE INDEX roles_by_connection ON roles (connection_id, room_id);

CREATE TABLE former_names (
  room_id INTEGER NOT NULL REFERENCES rooms,
  name TEXT NOT NULL,
  role_id INTEGER NOT NULL REFERENCES roles,
  PRIMARY KEY (room_id, name)
) STRICT, WITHOUT ROWID;

-- Who serves an address's deliveries: the holder of its lease, of one term.
CREATE TABLE waiters (
  address TEXT PRIMARY KEY,
  process TEXT NOT NULL,
  term INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  lease_until_ms INTEGER NOT NULL,      -- monotonic milliseconds of that boot
  taken_at_ms INTEGER NOT NULL,
  renewed_at_ms INTEGER NOT NULL,
  released_at_ms INTEGER,
  detail TEXT NOT NULL DEFAULT '',
  bell TEXT NOT NULL DEFAULT ''         -- path of the FIFO that wakes it
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  message_id INTEGER PRIMARY KEY AUTOINCREMENT,
  room_id INTEGER NOT NULL REFERENCES rooms,
  sender_role_id INTEGER REFERENCES roles,  -- NULL: a notice of the channel itself
  sender TEXT NOT NULL,                     -- the name at the time of sending
  text TEXT NOT NULL,
  reply_to INTEGER REFERENCES messages,
  created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE deliveries (
  delivery_id INTEGER PRIMARY KEY,
  message_id INTEGER NOT NULL REFERENCES messages,
  role_id INTEGER NOT NULL REFERENCES roles,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN
    ('pending', 'handed_over', 'accepted', 'seen', 'uncertain', 'conflict', 'withdrawn')),
  last_event TEXT NOT NULL DEFAULT 'sent',
  detail TEXT NOT NULL DEFAULT '',
  changed_at_ms INTEGER NOT NULL,
  -- Filled at the hand-over, and never read off the role's holder again:
  policy TEXT CHECK (policy IN ('queue', 'monitor')),
  address TEXT,
  place TEXT,                           -- JSON of the receiver: where evidence will stand
  text_sha256 TEXT,                     -- of the exact text written
  term INTEGER,
  handed_over_at_ms INTEGER,
  accepted_at_ms INTEGER,
  seen_at_ms INTEGER,
  receiver_ref TEXT,                    -- Codex: the queued submission's id
  repeats INTEGER NOT NULL DEFAULT 0,   -- hand-overs before this one that may have been shown
  looks INTEGER NOT NULL DEFAULT 0,
  next_look_at_ms INTEGER,
  absent_since_ms INTEGER,              -- the first look that found the key nowhere
  UNIQUE (message_id, role_id),
  CHECK (state = 'pending' OR state = 'withdrawn' OR
    (policy IS NOT NULL AND address IS NOT NULL AND text_sha256 IS NOT NULL AND term IS NOT NULL))
) STRICT;
CREATE INDEX deliveries_pending ON deliveries (role_id, message_id) WHERE state = 'pending';
CREATE INDEX deliveries_given ON deliveries (address, state, message_id) WHERE address IS NOT NULL;
CREATE INDEX deliveries_open_of_role ON deliveries (role_id, message_id)
  WHERE state IN ('handed_over', 'accepted', 'uncertain');

CREATE TABLE delivery_events (
  event_id INTEGER PRIMARY KEY,
  delivery_id INTEGER NOT NULL REFERENCES deliveries,
  at_ms INTEGER NOT NULL,
  event TEXT NOT NULL,
  from_state TEXT,
  to_state TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE INDEX delivery_events_by_delivery ON delivery_events (delivery_id, event_id);

-- No transition can go unrecorded: the table itself writes the event.
CREATE TRIGGER delivery_sent AFTER INSERT ON deliveries BEGIN
  INSERT INTO delivery_events (delivery_id, at_ms, event, from_state, to_state, why)
  VALUES (NEW.delivery_id, NEW.changed_at_ms, NEW.last_event, NULL, NEW.state, NEW.detail);
END;
CREATE TRIGGER delivery_changed AFTER UPDATE OF state ON deliveries WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO delivery_events (delivery_id, at_ms, event, from_state, to_state, why)
  VALUES (NEW.delivery_id, NEW.changed_at_ms, NEW.last_event, OLD.state, NEW.state, NEW.detail);
END;
