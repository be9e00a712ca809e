BEGIN TRANSACTION;
CREATE TABLE channel (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,                     -- random, made once; part of every key
  created_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "channel" VALUES(1,'0000000000000001',1800000000000);
CREATE TABLE connections (
  connection_id INTEGER PRIMARY KEY,
  address TEXT NOT NULL UNIQUE,         -- the session's key; deliveries are given to it
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
, harness TEXT NOT NULL DEFAULT 'other'
  CHECK (harness IN ('claude', 'codex', 'other', 'person'))) STRICT;
INSERT INTO "connections" VALUES(1,'ann','ann-claude','ann-server','session',NULL,NULL,NULL,NULL,NULL,0,1800000000000,'claude');
INSERT INTO "connections" VALUES(2,'thread','thread-codex','thread-server',NULL,'thread','/h',NULL,'/c',NULL,0,1800000000000,'codex');
INSERT INTO "connections" VALUES(3,'carl','carl-claude','carl-server',NULL,NULL,NULL,NULL,NULL,NULL,0,1800000000000,'claude');
INSERT INTO "connections" VALUES(4,'dora','dora-claude','dora-server',NULL,NULL,NULL,NULL,NULL,NULL,0,1800000000000,'claude');
INSERT INTO "connections" VALUES(5,'eve','eve-claude','eve-server',NULL,NULL,NULL,NULL,NULL,NULL,0,1800000014000,'claude');
INSERT INTO "connections" VALUES(6,'kim','kim-command','kim-command',NULL,NULL,NULL,NULL,NULL,NULL,0,1800000014000,'person');
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
INSERT INTO "deliveries" VALUES(1,1,2,'handed_over','hand_over_recorded','',1800000000000,'queue','thread','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000000000,NULL,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(2,2,2,'accepted','answered','why',1800000001000,'queue','thread','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000000000,1800000001000,NULL,NULL,0,0,1800000002000,NULL);
INSERT INTO "deliveries" VALUES(3,3,2,'seen','key_in_items_same_text','why',1800000003000,'queue','thread','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000001000,1800000002000,1800000003000,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(4,4,2,'uncertain','answer_lost','why',1800000004000,'queue','thread','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000003000,NULL,NULL,NULL,0,0,1800000014000,NULL);
INSERT INTO "deliveries" VALUES(5,5,2,'conflict','key_with_other_text','why',1800000006000,'queue','thread','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000004000,1800000005000,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(6,6,2,'withdrawn','person_dropped','why',1800000008000,'queue','thread','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000006000,1800000007000,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(7,7,2,'pending','refused_without_effect','why',1800000009000,'queue','thread','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000008000,NULL,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(8,8,3,'handed_over','hand_over_recorded','',1800000009000,'monitor','carl','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000009000,NULL,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(9,9,3,'accepted','taken','why',1800000010000,'monitor','carl','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000009000,1800000010000,NULL,NULL,0,0,1800000011000,NULL);
INSERT INTO "deliveries" VALUES(10,10,3,'seen','in_transcript','why',1800000012000,'monitor','carl','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000010000,1800000011000,1800000012000,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(11,11,3,'pending','stream_ended_not_in_transcript','why',1800000014000,'monitor','carl','','0000000000000000000000000000000000000000000000000000000000000000',1,1800000012000,1800000013000,NULL,NULL,1,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(12,12,2,'pending','sent','',1800000014000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(13,12,3,'pending','sent','',1800000014000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(14,12,5,'pending','sent','',1800000014000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL);
INSERT INTO "deliveries" VALUES(15,13,4,'pending','sent','',1800000014000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL);
CREATE TABLE delivery_events (
  event_id INTEGER PRIMARY KEY,
  delivery_id INTEGER NOT NULL REFERENCES deliveries,
  at_ms INTEGER NOT NULL,
  event TEXT NOT NULL,
  from_state TEXT,
  to_state TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT;
INSERT INTO "delivery_events" VALUES(1,1,1800000000000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(2,1,1800000000000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(3,2,1800000000000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(4,2,1800000000000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(5,2,1800000001000,'answered','handed_over','accepted','why');
INSERT INTO "delivery_events" VALUES(6,3,1800000001000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(7,3,1800000001000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(8,3,1800000002000,'answered','handed_over','accepted','why');
INSERT INTO "delivery_events" VALUES(9,3,1800000003000,'key_in_items_same_text','accepted','seen','why');
INSERT INTO "delivery_events" VALUES(10,4,1800000003000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(11,4,1800000003000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(12,4,1800000004000,'answer_lost','handed_over','uncertain','why');
INSERT INTO "delivery_events" VALUES(13,5,1800000004000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(14,5,1800000004000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(15,5,1800000005000,'answered','handed_over','accepted','why');
INSERT INTO "delivery_events" VALUES(16,5,1800000006000,'key_with_other_text','accepted','conflict','why');
INSERT INTO "delivery_events" VALUES(17,6,1800000006000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(18,6,1800000006000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(19,6,1800000007000,'answered','handed_over','accepted','why');
INSERT INTO "delivery_events" VALUES(20,6,1800000008000,'person_dropped','accepted','withdrawn','why');
INSERT INTO "delivery_events" VALUES(21,7,1800000008000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(22,7,1800000008000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(23,7,1800000009000,'refused_without_effect','handed_over','pending','why');
INSERT INTO "delivery_events" VALUES(24,8,1800000009000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(25,8,1800000009000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(26,9,1800000009000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(27,9,1800000009000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(28,9,1800000010000,'taken','handed_over','accepted','why');
INSERT INTO "delivery_events" VALUES(29,10,1800000010000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(30,10,1800000010000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(31,10,1800000011000,'taken','handed_over','accepted','why');
INSERT INTO "delivery_events" VALUES(32,10,1800000012000,'in_transcript','accepted','seen','why');
INSERT INTO "delivery_events" VALUES(33,11,1800000012000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(34,11,1800000012000,'hand_over_recorded','pending','handed_over','');
INSERT INTO "delivery_events" VALUES(35,11,1800000013000,'taken','handed_over','accepted','why');
INSERT INTO "delivery_events" VALUES(36,11,1800000014000,'stream_ended_not_in_transcript','accepted','pending','why');
INSERT INTO "delivery_events" VALUES(37,12,1800000014000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(38,13,1800000014000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(39,14,1800000014000,'sent',NULL,'pending','');
INSERT INTO "delivery_events" VALUES(40,15,1800000014000,'sent',NULL,'pending','');
CREATE TABLE former_names (
  room_id INTEGER NOT NULL REFERENCES rooms,
  name TEXT NOT NULL,
  role_id INTEGER NOT NULL REFERENCES roles,
  PRIMARY KEY (room_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "former_names" VALUES(1,'guest',4);
CREATE TABLE messages (
  message_id INTEGER PRIMARY KEY AUTOINCREMENT,
  room_id INTEGER NOT NULL REFERENCES rooms,
  sender_role_id INTEGER REFERENCES roles,  -- NULL: a notice of the channel itself
  sender TEXT NOT NULL,                     -- the name at the time of sending
  text TEXT NOT NULL,
  reply_to INTEGER REFERENCES messages,
  created_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "messages" VALUES(1,1,1,'boss','worker 0
  as it was sent: é 漢 ‮',NULL,1800000000000);
INSERT INTO "messages" VALUES(2,1,1,'boss','worker 1
  as it was sent: é 漢 ‮',NULL,1800000000000);
INSERT INTO "messages" VALUES(3,1,1,'boss','worker 2
  as it was sent: é 漢 ‮',NULL,1800000001000);
INSERT INTO "messages" VALUES(4,1,1,'boss','worker 3
  as it was sent: é 漢 ‮',NULL,1800000003000);
INSERT INTO "messages" VALUES(5,1,1,'boss','worker 4
  as it was sent: é 漢 ‮',NULL,1800000004000);
INSERT INTO "messages" VALUES(6,1,1,'boss','worker 5
  as it was sent: é 漢 ‮',NULL,1800000006000);
INSERT INTO "messages" VALUES(7,1,1,'boss','worker 6
  as it was sent: é 漢 ‮',NULL,1800000008000);
INSERT INTO "messages" VALUES(8,1,1,'boss','reader 0
  as it was sent: é 漢 ‮',NULL,1800000009000);
INSERT INTO "messages" VALUES(9,1,1,'boss','reader 1
  as it was sent: é 漢 ‮',NULL,1800000009000);
INSERT INTO "messages" VALUES(10,1,1,'boss','reader 2
  as it was sent: é 漢 ‮',NULL,1800000010000);
INSERT INTO "messages" VALUES(11,1,1,'boss','reader 3
  as it was sent: é 漢 ‮',NULL,1800000012000);
INSERT INTO "messages" VALUES(12,1,1,'boss','to all',NULL,1800000014000);
INSERT INTO "messages" VALUES(13,1,NULL,'agent-channel','Another session has joined the room ''hall'' as ''visitor'' and holds that role now. Do not join under this name again unless your user asks; another name is free to use.',NULL,1800000014000);
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
INSERT INTO "roles" VALUES(1,1,'boss',1,1800000000000,NULL,NULL,NULL);
INSERT INTO "roles" VALUES(2,1,'worker',2,1800000000000,NULL,NULL,NULL);
INSERT INTO "roles" VALUES(3,1,'reader',3,1800000000000,NULL,NULL,NULL);
INSERT INTO "roles" VALUES(4,1,'visitor',4,1800000000000,1800000014000,'taken_over',5);
INSERT INTO "roles" VALUES(5,1,'visitor',5,1800000014000,NULL,NULL,NULL);
INSERT INTO "roles" VALUES(6,1,'kim',6,1800000014000,NULL,NULL,NULL);
CREATE TABLE rooms (
  room_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  policy TEXT NOT NULL DEFAULT '',
  created_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "rooms" VALUES(1,'hall','be brief',1800000000000);
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
INSERT INTO "waiters" VALUES('carl','p2',1,'boot-1',10060000,1800000000000,1800000000000,1800000014000,'','');
INSERT INTO "waiters" VALUES('thread','p1',1,'boot-1',10060000,1800000000000,1800000000000,NULL,'queue full: 100 messages wait in the thread','/bells/1');
CREATE INDEX connections_by_session ON connections (session_id) WHERE session_id IS NOT NULL;
CREATE UNIQUE INDEX roles_held ON roles (room_id, name) WHERE ended_at_ms IS NULL;
CREATE UNIQUE INDEX roles_one_a_room ON roles (connection_id, room_id) WHERE ended_at_ms IS NULL;
CREATE INDEX roles_by_heir ON roles (heir_role_id) WHERE heir_role_id IS NOT NULL;
CREATE INDEX roles_by_connection ON roles (connection_id, room_id);
CREATE INDEX deliveries_given ON deliveries (address, state, message_id) WHERE address IS NOT NULL;
CREATE INDEX delivery_events_by_delivery ON delivery_events (delivery_id, event_id);
CREATE TRIGGER delivery_sent AFTER INSERT ON deliveries BEGIN
  INSERT INTO delivery_events (delivery_id, at_ms, event, from_state, to_state, why)
  VALUES (NEW.delivery_id, NEW.changed_at_ms, NEW.last_event, NULL, NEW.state, NEW.detail);
END;
CREATE TRIGGER delivery_changed AFTER UPDATE OF state ON deliveries WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO delivery_events (delivery_id, at_ms, event, from_state, to_state, why)
  VALUES (NEW.delivery_id, NEW.changed_at_ms, NEW.last_event, OLD.state, NEW.state, NEW.detail);
END;
CREATE INDEX deliveries_of_role ON deliveries (role_id, state, message_id);
CREATE INDEX messages_by_age ON messages (created_at_ms);
CREATE INDEX messages_by_answered ON messages (reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX messages_by_room ON messages (room_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('roles',6);
INSERT INTO "sqlite_sequence" VALUES('messages',13);
COMMIT;
PRAGMA user_version=3;
