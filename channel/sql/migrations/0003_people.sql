-- Schema 3. A person takes part under a role of their own, and what was said in a room is found by an index.

-- Another CHECK needs another column: SQLite can't change one in place.
ALTER TABLE connections ADD COLUMN kind TEXT NOT NULL DEFAULT 'other'
  CHECK (kind IN ('claude', 'codex', 'other', 'person'));
UPDATE connections SET kind = harness;
ALTER TABLE connections DROP COLUMN harness;
ALTER TABLE connections RENAME COLUMN kind TO harness;

-- With the message's id, which every index holds last.
CREATE INDEX messages_by_room ON messages (room_id);
