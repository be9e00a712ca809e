-- Schema 2. What people ask for (deliveries by role, state and age) and what `trim` removes is found by an index,
-- however many messages were handled.

-- Every state of a role in one index; it also does what two partial ones did.
CREATE INDEX deliveries_of_role ON deliveries (role_id, state, message_id);
DROP INDEX deliveries_pending;
DROP INDEX deliveries_open_of_role;

CREATE INDEX messages_by_age ON messages (created_at_ms);

-- Without it, each message that is deleted would cost a walk through all of them: nobody else may answer it.
CREATE INDEX messages_by_answered ON messages (reply_to) WHERE reply_to IS NOT NULL;
