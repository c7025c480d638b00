-- Modes, what moderators see of a question, and who did what.
ALTER TABLE suggestions ADD COLUMN mode TEXT NOT NULL DEFAULT 'shadow';
UPDATE suggestions SET mode = CASE WHEN shadow THEN 'shadow' ELSE 'automatic' END;
ALTER TABLE suggestions ADD COLUMN sent_ms BIGINT;
UPDATE suggestions SET sent_ms = created_ms WHERE NOT shadow;
ALTER TABLE questions ADD COLUMN body TEXT NOT NULL DEFAULT '';
ALTER TABLE questions ADD COLUMN origin TEXT NOT NULL DEFAULT '{}';
ALTER TABLE questions ADD COLUMN closed_ms BIGINT;
ALTER TABLE events ADD COLUMN origin TEXT NOT NULL DEFAULT '{}';
ALTER TABLE feedback ADD COLUMN given_by TEXT NOT NULL DEFAULT '';
CREATE TABLE audit (
  id {serial}, at_ms BIGINT NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, person BIGINT
);
-- Narrow facts for reports, so that they need not read every suggestion.
ALTER TABLE suggestions ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suggestions ADD COLUMN asked_answered BOOLEAN;
CREATE INDEX suggestions_quality ON suggestions (
  created_ms, round, shadow, state, asked, asked_answered, resolved_ms, place, baseline_place
);
CREATE INDEX asks_quality ON asks (kind, at_ms, shadow, person);
CREATE TABLE calibration (
  day BIGINT NOT NULL, shadow BOOLEAN NOT NULL, bin INTEGER NOT NULL, people BIGINT NOT NULL,
  stated DOUBLE PRECISION NOT NULL, observed BIGINT NOT NULL, PRIMARY KEY (day, shadow, bin)
);
-- Which suggestions quote the title of a question, so that they are found when it is removed.
CREATE TABLE quotes (
  question BIGINT NOT NULL, suggestion BIGINT NOT NULL, PRIMARY KEY (question, suggestion)
);
-- Signed requests that may not be repeated.
CREATE TABLE seen_hooks (digest TEXT PRIMARY KEY, at_ms BIGINT NOT NULL, keep BOOLEAN NOT NULL);
ALTER TABLE halves RENAME TO topic_parts;
