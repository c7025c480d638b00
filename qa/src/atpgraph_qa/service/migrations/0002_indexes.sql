-- What is looked up for each answer, each message shown and each key; slow once there are many.
CREATE INDEX outbox_suggestion ON outbox (suggestion);
CREATE INDEX deliveries_message ON deliveries (message);
CREATE INDEX idempotency_created ON idempotency (created_ms);
CREATE INDEX suggestions_created ON suggestions (created_ms);
