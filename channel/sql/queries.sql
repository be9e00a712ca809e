-- Every statement of the channel. A line `-- name: purpose` begins each.

-- channel_id: the channel's id, if it has one yet
SELECT id FROM channel;

-- make_channel: give the channel its id, once
INSERT OR IGNORE INTO channel (one, id, created_at_ms) VALUES (1, :id, :now_ms);

-- room_by_name: a room, if there
SELECT room_id, policy FROM rooms WHERE name = :room;

-- make_room: the room, made if need be
INSERT INTO rooms (name, created_at_ms) VALUES (:room, :now_ms) ON CONFLICT (name) DO NOTHING;

-- set_policy: replace a room's policy
UPDATE rooms SET policy = :policy WHERE room_id = :room_id;

-- put_connection: a session as its newest server process describes it
INSERT INTO connections (address, harness, process, server, session_id, thread_id, codex_home, codex_sqlite_home, codex_path,
  codex_version, runs_exec, seen_at_ms)
VALUES (:address, :harness, :process, :server, :session_id, :thread_id, :codex_home, :codex_sqlite_home, :codex_path,
  :codex_version, :runs_exec, :now_ms)
ON CONFLICT (address) DO UPDATE SET process = excluded.process, server = excluded.server,
  session_id = coalesce(excluded.session_id, session_id), codex_home = coalesce(excluded.codex_home, codex_home),
  codex_sqlite_home = excluded.codex_sqlite_home,
  codex_path = coalesce(excluded.codex_path, codex_path), codex_version = excluded.codex_version,
  runs_exec = excluded.runs_exec, seen_at_ms = excluded.seen_at_ms
RETURNING connection_id;

-- connection_by_address: one session
SELECT * FROM connections WHERE address = :address;

-- connections_of_session: other processes that ran this Claude session before
SELECT connection_id, process FROM connections WHERE session_id = :session_id AND address <> :address;

-- inherit_roles: a new process of the same Claude session takes the roles of a dead one, room by room
UPDATE roles SET connection_id = :connection_id WHERE connection_id = :dead_id AND ended_at_ms IS NULL
  AND room_id NOT IN (SELECT room_id FROM roles WHERE connection_id = :connection_id AND ended_at_ms IS NULL);

-- own_roles: the roles that a session holds or has lost, the newest registration of a room first
SELECT r.role_id, r.name, r.ended_by, rooms.room_id, rooms.name AS room
FROM connections c JOIN roles r ON r.connection_id = c.connection_id JOIN rooms ON rooms.room_id = r.room_id
WHERE c.address = :address ORDER BY r.role_id DESC;

-- room_roles: the roles held in a room, with the session and the waiter behind each, and how many messages wait for
-- it, counted to a thousand
SELECT r.role_id, r.name, r.joined_at_ms, c.address, c.harness, c.process, c.server, c.seen_at_ms,
  w.process AS waiter_process, w.boot_id, w.lease_until_ms, w.renewed_at_ms, w.released_at_ms, w.detail, w.bell, (SELECT count(*) FROM (SELECT 1 FROM deliveries p
    WHERE p.role_id = r.role_id AND p.state = 'pending' LIMIT 1000)) AS waiting
FROM roles r JOIN connections c ON c.connection_id = r.connection_id LEFT JOIN waiters w ON w.address = c.address
WHERE r.room_id = :room_id AND r.ended_at_ms IS NULL ORDER BY r.role_id;

-- seats: every held role, with the session and the waiter behind it, and how many messages wait for it, counted to a
-- thousand
SELECT rooms.name AS room, r.role_id, r.name, r.joined_at_ms, c.address, c.harness, c.process, c.server, c.seen_at_ms,
  c.thread_id, c.codex_home, w.process AS waiter_process, w.boot_id, w.lease_until_ms, w.renewed_at_ms, w.released_at_ms,
  w.detail, w.bell, (SELECT count(*) FROM (SELECT 1 FROM deliveries p
    WHERE p.role_id = r.role_id AND p.state = 'pending' LIMIT 1000)) AS waiting
FROM roles r JOIN rooms ON rooms.room_id = r.room_id JOIN connections c ON c.connection_id = r.connection_id
  LEFT JOIN waiters w ON w.address = c.address
WHERE r.ended_at_ms IS NULL ORDER BY rooms.name, r.role_id;

-- sender_room: the roles that a session holds, all or that in one room, each with the roles of its room as in
-- room_roles
SELECT own.role_id AS own_role_id, own.name AS own_name, rooms.room_id, rooms.name AS room,
  r.role_id, r.name, r.joined_at_ms, c.address, c.harness, c.process, c.server, c.seen_at_ms,
  w.process AS waiter_process, w.boot_id, w.lease_until_ms, w.renewed_at_ms, w.released_at_ms, w.detail, w.bell, (SELECT count(*) FROM (SELECT 1 FROM deliveries p
    WHERE p.role_id = r.role_id AND p.state = 'pending' LIMIT 1000)) AS waiting
FROM connections me JOIN roles own ON own.connection_id = me.connection_id AND own.ended_at_ms IS NULL
  JOIN rooms ON rooms.room_id = own.room_id JOIN roles r ON r.room_id = own.room_id AND r.ended_at_ms IS NULL
  JOIN connections c ON c.connection_id = r.connection_id LEFT JOIN waiters w ON w.address = c.address
WHERE me.address = :address AND (:room IS NULL OR rooms.name = :room) ORDER BY r.role_id;

-- add_role: a new registration of a name
INSERT INTO roles (room_id, name, connection_id, joined_at_ms)
VALUES (:room_id, :name, :connection_id, :now_ms) RETURNING role_id;

-- end_role: a registration ends
UPDATE roles SET ended_at_ms = :now_ms, ended_by = :ended_by WHERE role_id = :role_id;

-- name_heir: a role was taken over; whoever took it is the heir of all before it
UPDATE roles SET heir_role_id = :new_role_id WHERE role_id = :role_id OR heir_role_id = :role_id;

-- move_pending: what waits for a role follows to its next registration
UPDATE deliveries SET role_id = :new_role_id WHERE role_id = :role_id AND state = 'pending';

-- unanswered: of the newest messages that were given to a role before it was taken over, those whose sender was sent
-- nothing by it since
SELECT m.message_id, m.sender, m.created_at_ms
FROM roles before CROSS JOIN json_each(:given_states) given
  CROSS JOIN deliveries d ON d.delivery_id IN (SELECT newest.delivery_id FROM deliveries newest
    WHERE newest.role_id = before.role_id AND newest.state = given.value ORDER BY newest.message_id DESC LIMIT :limit)
  JOIN messages m ON m.message_id = d.message_id
WHERE before.heir_role_id = :role_id AND m.sender_role_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM deliveries a JOIN messages answer ON answer.message_id = a.message_id
    JOIN roles answering ON answering.role_id = answer.sender_role_id
  WHERE a.role_id IN (m.sender_role_id, (SELECT heir_role_id FROM roles WHERE role_id = m.sender_role_id))
    AND a.state IN (SELECT value FROM json_each(:states)) AND a.message_id > m.message_id
    AND answering.heir_role_id = :role_id)
ORDER BY m.message_id DESC LIMIT :limit;

-- rename_role: another name for the same registration
UPDATE roles SET name = :name WHERE role_id = :role_id;

-- remember_former_name: so that a send to the old name can be told the new one
INSERT INTO former_names (room_id, name, role_id) VALUES (:room_id, :name, :role_id)
ON CONFLICT (room_id, name) DO UPDATE SET role_id = excluded.role_id;

-- forget_former_name: the name is held again
DELETE FROM former_names WHERE room_id = :room_id AND name = :name;

-- now_called: what the role that once had this name is called now
SELECT r.name FROM former_names f JOIN roles r ON r.role_id = f.role_id
WHERE f.room_id = :room_id AND f.name = :name AND r.ended_at_ms IS NULL;

-- count_pending: how many messages wait for a role
SELECT count(*) FROM deliveries WHERE role_id = :role_id AND state = 'pending';

-- add_message: a message, with one delivery for each role id in a JSON array; a row with its id for each
INSERT INTO messages (room_id, sender_role_id, sender, text, created_at_ms)
VALUES (:room_id, :sender_role_id, :sender, :text, :now_ms);
INSERT INTO deliveries (message_id, role_id, detail, changed_at_ms)
SELECT (SELECT max(message_id) FROM messages), value, '', :now_ms FROM json_each(:role_ids) RETURNING message_id;

-- message: one message whole
SELECT m.message_id, rooms.name AS room, m.sender, m.text, m.reply_to, m.created_at_ms
FROM messages m JOIN rooms ON rooms.room_id = m.room_id WHERE m.message_id = :message_id;

-- next_pending: what waits for the roles of an address, oldest message first
SELECT d.delivery_id, d.repeats, r.name AS recipient, m.message_id, rooms.name AS room, m.sender, m.text,
  m.reply_to, m.created_at_ms
FROM connections c JOIN roles r ON r.connection_id = c.connection_id
  JOIN deliveries d ON d.role_id = r.role_id AND d.state = 'pending'
  JOIN messages m ON m.message_id = d.message_id JOIN rooms ON rooms.room_id = m.room_id
WHERE c.address = :address ORDER BY d.message_id LIMIT :limit;

-- record_hand_over: the decision, by the newest term only, for the deliveries of a JSON array that still wait for
-- this address
UPDATE deliveries SET state = :state, last_event = :event, detail = given.detail, changed_at_ms = :now_ms,
  policy = :policy, address = :address, place = given.place, text_sha256 = given.text_sha256, term = :term,
  handed_over_at_ms = :now_ms, accepted_at_ms = NULL, receiver_ref = NULL, looks = 0, next_look_at_ms = NULL,
  absent_since_ms = NULL
FROM (SELECT json_extract(value, '$.delivery_id') AS delivery_id, json_extract(value, '$.text_sha256') AS text_sha256,
  json_extract(value, '$.place') AS place, json_extract(value, '$.detail') AS detail FROM json_each(:hand_overs)) given
WHERE deliveries.delivery_id = given.delivery_id AND deliveries.state = 'pending'
  AND deliveries.role_id IN (SELECT r.role_id FROM roles r JOIN connections c ON c.connection_id = r.connection_id
    WHERE c.address = :address)
  AND EXISTS (SELECT 1 FROM waiters w WHERE w.address = :address AND w.term = :term AND w.process = :process
    AND w.released_at_ms IS NULL)
  AND :schema = (SELECT user_version FROM pragma_user_version)
RETURNING delivery_id;

-- delivery_state: what an outcome needs to know of a delivery
SELECT delivery_id, policy, state, detail, looks, absent_since_ms, repeats, term FROM deliveries WHERE delivery_id = :delivery_id;

-- record_outcome: a transition, or a look that found nothing new
UPDATE deliveries SET state = :state, last_event = :event, detail = :detail,
  changed_at_ms = CASE WHEN state = :state THEN changed_at_ms ELSE :now_ms END, repeats = :repeats, receiver_ref = coalesce(:reference, receiver_ref),
  accepted_at_ms = CASE WHEN :state = 'accepted' THEN coalesce(accepted_at_ms, :now_ms) ELSE accepted_at_ms END,
  seen_at_ms = CASE WHEN :state = 'seen' THEN coalesce(seen_at_ms, :now_ms) ELSE seen_at_ms END,
  looks = :looks, next_look_at_ms = :next_look_at_ms, absent_since_ms = :absent_since_ms
WHERE delivery_id = :delivery_id;

-- owed_to: a delivery waits again, and its role has ended meanwhile: who took the role over, or the role itself.
-- A notice of the channel is meant for the session that lost the role, and follows nobody.
SELECT owed.role_id, owed.room_id, owed.name, owed.ended_at_ms FROM deliveries d
  JOIN messages m ON m.message_id = d.message_id JOIN roles r ON r.role_id = d.role_id
  JOIN roles owed ON owed.role_id = coalesce(r.heir_role_id, r.role_id)
WHERE d.delivery_id = :delivery_id AND r.ended_at_ms IS NOT NULL AND m.sender_role_id IS NOT NULL;

-- follow_role: a delivery that waits again goes to who took the role over
UPDATE deliveries SET role_id = :role_id WHERE delivery_id = :delivery_id;

-- note_waiting: why the pending deliveries of an address are not handed over now
UPDATE deliveries SET detail = :detail WHERE state = 'pending' AND detail <> :detail
  AND role_id IN (SELECT r.role_id FROM roles r JOIN connections c ON c.connection_id = r.connection_id
    WHERE c.address = :address);

-- withdraw_pending: a role ends; what still waits for it is withdrawn, and who sent it
UPDATE deliveries SET state = :state, last_event = :event, detail = :detail, changed_at_ms = :now_ms
WHERE role_id = :role_id AND state = 'pending'
RETURNING message_id, (SELECT m.sender_role_id FROM messages m WHERE m.message_id = deliveries.message_id)
  AS sender_role_id;

-- settle_given_before: what waits for a role and may have been given to its session before, as another role of the
-- room. It is a repeat for Claude Code, and withdrawn for a Codex thread, which may hold the message's key. What waited
-- when it was withdrawn was not given, unless it waited to be shown again.
UPDATE deliveries SET repeats = 1
WHERE role_id = :role_id AND state = 'pending' AND repeats = 0 AND EXISTS (SELECT 1
  FROM roles r JOIN connections own ON own.connection_id = r.connection_id AND own.harness <> 'codex'
    JOIN connections c ON c.address = own.address OR c.session_id = own.session_id
    JOIN deliveries given ON given.message_id = deliveries.message_id AND given.address = c.address
      AND (given.repeats > 0 OR CASE given.state WHEN 'pending' THEN FALSE
        WHEN 'withdrawn' THEN 'pending' <> (SELECT e.from_state FROM delivery_events e
          WHERE e.delivery_id = given.delivery_id ORDER BY e.event_id DESC LIMIT 1)
        ELSE TRUE END)
  WHERE r.role_id = :role_id);
UPDATE deliveries SET state = :state, last_event = :event, detail = :detail, changed_at_ms = :now_ms
WHERE role_id = :role_id AND state = 'pending' AND EXISTS (SELECT 1
  FROM roles r JOIN connections own ON own.connection_id = r.connection_id AND own.harness = 'codex'
    JOIN deliveries given ON given.message_id = deliveries.message_id AND given.address = own.address
      AND CASE given.state WHEN 'pending' THEN FALSE
        WHEN 'withdrawn' THEN 'pending' <> (SELECT e.from_state FROM delivery_events e
          WHERE e.delivery_id = given.delivery_id ORDER BY e.event_id DESC LIMIT 1)
        ELSE TRUE END
  WHERE r.role_id = :role_id);

-- is_held: whether a registration is in force
SELECT 1 FROM roles WHERE role_id = :role_id AND ended_at_ms IS NULL;

-- open_at_address: what was handed over at an address and is not settled; then what the roles of this address
-- were given elsewhere: in a dead process of the same session, and in the session that held the role before; then
-- what other processes of the same session were given, whoever holds the role now.
-- That only under `monitor`: a transcript can be read from anywhere, a queue is looked at through its own thread.
SELECT d.delivery_id, d.message_id, d.state, d.text_sha256, d.place, d.handed_over_at_ms, d.term, d.address,
  d.next_look_at_ms, r.ended_by
FROM deliveries d JOIN roles r ON r.role_id = d.role_id
WHERE d.state IN ('handed_over', 'accepted', 'uncertain') AND d.policy = :policy AND d.address = :address
UNION
SELECT d.delivery_id, d.message_id, d.state, d.text_sha256, d.place, d.handed_over_at_ms, d.term, d.address,
  d.next_look_at_ms, before.ended_by
FROM connections c JOIN roles held ON held.connection_id = c.connection_id AND held.ended_at_ms IS NULL
  JOIN roles before ON before.role_id = held.role_id OR before.heir_role_id = held.role_id
  CROSS JOIN deliveries d ON d.role_id = before.role_id
WHERE c.address = :address AND d.address <> :address AND d.policy = :policy AND :policy = 'monitor'
  AND d.state IN ('handed_over', 'accepted', 'uncertain')
UNION
SELECT d.delivery_id, d.message_id, d.state, d.text_sha256, d.place, d.handed_over_at_ms, d.term, d.address,
  d.next_look_at_ms, r.ended_by
FROM connections c JOIN connections other ON other.session_id = c.session_id AND other.address <> c.address
  CROSS JOIN deliveries d ON d.address = other.address JOIN roles r ON r.role_id = d.role_id
WHERE c.address = :address AND d.policy = :policy AND :policy = 'monitor'
  AND d.state IN ('handed_over', 'accepted', 'uncertain')
ORDER BY 2;

-- record_silent_look: a look that said nothing
UPDATE deliveries SET looks = :looks, next_look_at_ms = :next_look_at_ms WHERE delivery_id = :delivery_id;

-- broken_off: hand-overs at an address of which nobody said what became of them
SELECT delivery_id, policy, term FROM deliveries
WHERE address = :address AND state = 'handed_over' ORDER BY message_id;

-- next_look: when the next look-up of an address falls due
SELECT min(next_look_at_ms) FROM deliveries
WHERE address = :address AND state IN ('handed_over', 'accepted', 'uncertain');

-- troubled: the messages of an address that a person should know of
SELECT state, message_id FROM deliveries
WHERE address = :address AND state IN ('uncertain', 'conflict') ORDER BY message_id;

-- addresses_with_work: Codex threads with something to hand over or to look for
SELECT c.address,
  EXISTS (SELECT 1 FROM roles r JOIN deliveries d ON d.role_id = r.role_id AND d.state = 'pending'
    WHERE r.connection_id = c.connection_id) AS has_pending,
  min(d.next_look_at_ms) AS next_look_at_ms, count(d.delivery_id) AS open
FROM connections c LEFT JOIN deliveries d ON d.address = c.address
  AND d.state IN ('handed_over', 'accepted', 'uncertain')
WHERE c.harness = 'codex' GROUP BY c.connection_id HAVING has_pending OR open > 0;

-- waiter: the holder of an address's lease, and what it says
SELECT * FROM waiters WHERE address = :address;

-- take_lease: a new term
INSERT INTO waiters (address, process, term, boot_id, lease_until_ms, taken_at_ms, renewed_at_ms, bell)
VALUES (:address, :process, 1, :boot_id, :lease_until_ms, :now_ms, :now_ms, :bell)
ON CONFLICT (address) DO UPDATE SET process = excluded.process, term = term + 1, boot_id = excluded.boot_id,
  lease_until_ms = excluded.lease_until_ms, taken_at_ms = excluded.taken_at_ms,
  renewed_at_ms = excluded.renewed_at_ms, released_at_ms = NULL, detail = '', bell = excluded.bell
RETURNING term;

-- renew_leases: the leases that a process keeps, in one statement; addresses in a JSON array
UPDATE waiters SET lease_until_ms = :lease_until_ms, boot_id = :boot_id, renewed_at_ms = :now_ms
WHERE address IN (SELECT value FROM json_each(:addresses)) AND process = :process AND released_at_ms IS NULL
  AND :schema = (SELECT user_version FROM pragma_user_version)
RETURNING address, term;

-- release_lease: the holder stops
UPDATE waiters SET released_at_ms = :now_ms, detail = :detail, bell = ''
WHERE address = :address AND term = :term AND released_at_ms IS NULL;

-- set_waiter_detail: the holder's words on how it goes
UPDATE waiters SET detail = :detail WHERE address = :address AND term = :term AND detail <> :detail;

-- holds_lease: whether a term is the newest and in force
SELECT 1 FROM waiters WHERE address = :address AND term = :term AND process = :process AND released_at_ms IS NULL;

-- withdrawn_at_address: what a person withdrew of a thread's, newest first; it may still appear there
SELECT delivery_id, message_id, text_sha256, place, handed_over_at_ms FROM deliveries
WHERE address = :address AND state = 'withdrawn' AND policy = 'queue' ORDER BY message_id DESC LIMIT :limit;

-- list_deliveries: the newest deliveries in the states of a JSON array; NULL for any room or role. Of each role and
-- state no more are read than are shown.
SELECT d.delivery_id, d.message_id, d.state, rooms.name AS room, m.sender, r.name AS recipient, m.created_at_ms,
  d.changed_at_ms, d.detail, c.harness
FROM rooms JOIN roles r ON r.room_id = rooms.room_id JOIN connections c ON c.connection_id = r.connection_id
  CROSS JOIN json_each(:states) wanted
  CROSS JOIN deliveries d ON d.delivery_id IN (
    SELECT newest.delivery_id FROM deliveries newest
    WHERE newest.role_id = r.role_id AND newest.state = wanted.value AND newest.message_id <= (
      SELECT message_id FROM messages WHERE created_at_ms <= :sent_before_ms ORDER BY created_at_ms DESC LIMIT 1)
    ORDER BY newest.message_id DESC LIMIT :limit)
  JOIN messages m ON m.message_id = d.message_id
WHERE (:room IS NULL OR rooms.name = :room) AND (:role IS NULL OR r.name = :role)
  AND m.created_at_ms <= :sent_before_ms
ORDER BY d.message_id DESC, d.delivery_id DESC LIMIT :limit;

-- delivery: one delivery with all that is stored of it, but of its text only the beginning
SELECT d.*, rooms.name AS room, m.sender, r.name AS recipient, m.created_at_ms,
  substr(m.text, 1, :characters) AS text_begins, length(m.text) AS text_characters
FROM deliveries d JOIN messages m ON m.message_id = d.message_id JOIN roles r ON r.role_id = d.role_id
  JOIN rooms ON rooms.room_id = m.room_id
WHERE d.delivery_id = :delivery_id;

-- delivery_events: all that happened to a delivery
SELECT at_ms, event, from_state, to_state, why FROM delivery_events
WHERE delivery_id = :delivery_id ORDER BY event_id;

-- delivery_to: a message's delivery to the role of a name
SELECT d.delivery_id FROM deliveries d JOIN roles r ON r.role_id = d.role_id
WHERE d.message_id = :message_id AND r.name = :name;

-- recipient_now: who gets what is sent to a delivery's role now: itself, or who took it over
SELECT owed.role_id, owed.name, owed.ended_at_ms, c.address FROM deliveries d
  JOIN roles r ON r.role_id = d.role_id JOIN roles owed ON owed.role_id = coalesce(r.heir_role_id, r.role_id)
  JOIN connections c ON c.connection_id = owed.connection_id
WHERE d.delivery_id = :delivery_id;

-- send_again: the same text from the same sender as a new message to one role
INSERT INTO messages (room_id, sender_role_id, sender, text, reply_to, created_at_ms)
SELECT m.room_id, m.sender_role_id, m.sender, m.text, m.reply_to, :now_ms
FROM deliveries d JOIN messages m ON m.message_id = d.message_id WHERE d.delivery_id = :delivery_id;
INSERT INTO deliveries (message_id, role_id, changed_at_ms)
SELECT max(message_id), :role_id, :now_ms FROM messages RETURNING message_id, delivery_id;

-- decide: a person withdraws a delivery; it is not looked for by itself any more
UPDATE deliveries SET state = :state, last_event = :event, detail = :detail, changed_at_ms = :now_ms,
  next_look_at_ms = NULL
WHERE delivery_id = :delivery_id;

-- to_trim: what was sent before a time, the oldest first from where the last batch ended, and whether nothing more
-- can happen to it: seen, withdrawn, or accepted by a session that has no transcript. The newest of all is kept, so that
-- no id is given twice.
SELECT m.message_id, m.created_at_ms, NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.message_id
    AND d.state NOT IN ('seen', 'withdrawn')
    AND NOT (d.state = 'accepted' AND d.last_event = 'stream_ended_no_transcript')) AS is_handled
FROM messages m WHERE m.created_at_ms < :before_ms AND (m.created_at_ms, m.message_id) > (:after_ms, :after_id)
  AND m.message_id < (SELECT max(message_id) FROM messages)
ORDER BY m.created_at_ms, m.message_id LIMIT :limit;

-- trim: take the messages of a JSON array away, with all that is recorded of them; an answer to one stays
DELETE FROM delivery_events WHERE delivery_id IN (SELECT delivery_id FROM deliveries
  WHERE message_id IN (SELECT value FROM json_each(:message_ids)));
DELETE FROM deliveries WHERE message_id IN (SELECT value FROM json_each(:message_ids));
UPDATE messages SET reply_to = NULL WHERE reply_to IN (SELECT value FROM json_each(:message_ids));
DELETE FROM messages WHERE message_id IN (SELECT value FROM json_each(:message_ids));

-- unused_pages: pages of the file that hold nothing
SELECT freelist_count FROM pragma_freelist_count;

-- rooms_by_activity: the rooms, those with the newest messages first
SELECT room_id, name, policy, (SELECT max(m.message_id) FROM messages m WHERE m.room_id = rooms.room_id) AS newest
FROM rooms ORDER BY newest DESC, room_id DESC LIMIT :limit;

-- said_in_room: the newest messages of a room before one, with the beginning of each text
SELECT m.message_id, m.sender, m.sender_role_id, m.reply_to, m.created_at_ms,
  substr(m.text, 1, :characters) AS text_begins, length(m.text) AS text_characters
FROM messages m WHERE m.room_id = (SELECT room_id FROM rooms WHERE name = :room) AND m.message_id < :before_id
ORDER BY m.message_id DESC LIMIT :limit;

-- said_after: the messages of a room after one, the oldest first, as in said_in_room
SELECT m.message_id, m.sender, m.sender_role_id, m.reply_to, m.created_at_ms,
  substr(m.text, 1, :characters) AS text_begins, length(m.text) AS text_characters
FROM messages m WHERE m.room_id = (SELECT room_id FROM rooms WHERE name = :room) AND m.message_id > :after_id
ORDER BY m.message_id LIMIT :limit;

-- said: the messages of a JSON array of ids, the oldest first, as in said_in_room
SELECT m.message_id, m.sender, m.sender_role_id, m.reply_to, m.created_at_ms,
  substr(m.text, 1, :characters) AS text_begins, length(m.text) AS text_characters
FROM messages m WHERE m.message_id IN (SELECT value FROM json_each(:message_ids))
ORDER BY m.message_id;

-- last_before: the newest message that was sent before a time
SELECT message_id FROM messages WHERE created_at_ms < :before_ms ORDER BY created_at_ms DESC, message_id DESC LIMIT 1;

-- unshown_of_messages: of the messages of a JSON array those to a person's roles of which nobody said that they were
-- shown
SELECT d.delivery_id, d.state, m.text FROM json_each(:message_ids) given CROSS JOIN deliveries d ON d.message_id = given.value
  JOIN roles r ON r.role_id = d.role_id JOIN connections c ON c.connection_id = r.connection_id
  JOIN messages m ON m.message_id = d.message_id
WHERE c.address = :address AND d.state IN ('pending', 'handed_over');

-- deliveries_of_messages: what became of the messages of a JSON array
SELECT d.delivery_id, d.message_id, r.name AS recipient, d.state, d.detail, d.policy, d.repeats, d.changed_at_ms,
  d.handed_over_at_ms, d.accepted_at_ms, d.seen_at_ms, d.looks, d.next_look_at_ms, d.absent_since_ms
FROM json_each(:message_ids) given CROSS JOIN deliveries d ON d.message_id = given.value
  JOIN roles r ON r.role_id = d.role_id
ORDER BY d.delivery_id;

-- times_since: of the newest messages since a time, how long each delivery took to be accepted, and to be seen
SELECT recent.message_id, recent.created_at_ms,
  coalesce(d.accepted_at_ms, d.seen_at_ms) - recent.created_at_ms AS accepted_after_ms,
  d.seen_at_ms - recent.created_at_ms AS seen_after_ms
FROM (SELECT message_id, created_at_ms FROM messages WHERE created_at_ms >= :since_ms
    ORDER BY created_at_ms DESC LIMIT :limit) recent
  CROSS JOIN deliveries d ON d.message_id = recent.message_id;

-- waiting_by_minute: by how many the waiting deliveries grew in each minute since a time, of so many of the newest
-- events
SELECT at_ms / :minute_ms AS minute, sum((to_state = 'pending') - (coalesce(from_state, '') = 'pending')) AS more
FROM delivery_events
WHERE event_id > (SELECT max(event_id) FROM delivery_events) - :limit AND at_ms >= :since_ms GROUP BY minute;

-- last_event_not_read: the newest before those
SELECT at_ms FROM delivery_events
WHERE event_id <= (SELECT max(event_id) FROM delivery_events) - :limit ORDER BY event_id DESC LIMIT 1;

-- count_waiting: how many deliveries wait, counted to a limit
SELECT count(*) FROM (SELECT 1 FROM roles r CROSS JOIN deliveries d ON d.role_id = r.role_id AND d.state = 'pending'
  LIMIT :limit);
