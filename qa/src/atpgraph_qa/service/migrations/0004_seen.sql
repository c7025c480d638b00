-- One table of requests that may not have an effect twice.
DROP TABLE idempotency;
ALTER TABLE seen_hooks RENAME TO seen;
