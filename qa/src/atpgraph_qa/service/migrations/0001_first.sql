-- {serial} is the database's own way to number rows. Times are milliseconds since 1970, JSON is text.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE tokens (
  id {serial}, name TEXT NOT NULL, digest TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL,
  created_ms BIGINT NOT NULL, used_ms BIGINT, revoked_ms BIGINT
);
CREATE TABLE sessions (
  digest TEXT PRIMARY KEY, token BIGINT NOT NULL, csrf TEXT NOT NULL, expires_ms BIGINT NOT NULL
);
CREATE TABLE idempotency (
  token BIGINT NOT NULL, name TEXT NOT NULL, fingerprint TEXT NOT NULL, status INTEGER, body TEXT,
  created_ms BIGINT NOT NULL, PRIMARY KEY (token, name)
);

-- The truth. Everything below it but settings, feedback and deliveries follows from it.
CREATE TABLE events (
  seq {serial}, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, at_ms BIGINT NOT NULL,
  received_ms BIGINT NOT NULL, question BIGINT, answer BIGINT, person BIGINT, payload TEXT NOT NULL,
  refused TEXT
);
CREATE INDEX events_person ON events (person);
CREATE INDEX events_question ON events (question);
CREATE INDEX events_answer ON events (answer);
CREATE TABLE halves (
  topic BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, received_ms BIGINT NOT NULL, payload TEXT NOT NULL
);

CREATE TABLE people (
  id BIGINT PRIMARY KEY, handle TEXT, opted_out BOOLEAN NOT NULL, away_until TEXT, hours TEXT,
  time_zone TEXT, capacity INTEGER, member_of TEXT NOT NULL, topics TEXT NOT NULL,
  updated_ms BIGINT NOT NULL
);
CREATE TABLE questions (
  id BIGINT PRIMARY KEY, title TEXT NOT NULL, tags TEXT NOT NULL, asker BIGINT,
  asked_ms BIGINT NOT NULL, answers INTEGER NOT NULL, answered_ms BIGINT, first_person BIGINT,
  accepted_answer BIGINT, accepted_person BIGINT
);
CREATE TABLE answers (
  id BIGINT PRIMARY KEY, question BIGINT NOT NULL, person BIGINT, at_ms BIGINT NOT NULL
);

CREATE TABLE suggestions (
  id {serial}, question BIGINT NOT NULL, round INTEGER NOT NULL, created_ms BIGINT NOT NULL,
  shadow BOOLEAN NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL, people TEXT NOT NULL,
  ranking TEXT NOT NULL, baseline TEXT NOT NULL, decisions TEXT NOT NULL, notes TEXT NOT NULL,
  confidence DOUBLE PRECISION NOT NULL, abstains TEXT NOT NULL, candidates INTEGER NOT NULL,
  escalate_ms BIGINT, changed_ms BIGINT NOT NULL, outcome BIGINT, place INTEGER,
  baseline_place INTEGER, resolved_ms BIGINT, UNIQUE (question, round)
);
CREATE INDEX suggestions_state ON suggestions (state);
CREATE INDEX suggestions_escalate ON suggestions (escalate_ms);
CREATE TABLE feedback (
  id {serial}, suggestion BIGINT NOT NULL, at_ms BIGINT NOT NULL, verdict TEXT NOT NULL,
  person BIGINT, token BIGINT, note TEXT NOT NULL
);
CREATE TABLE asks (
  id {serial}, person BIGINT NOT NULL, suggestion BIGINT, at_ms BIGINT NOT NULL, kind TEXT NOT NULL,
  shadow BOOLEAN NOT NULL
);
CREATE INDEX asks_at ON asks (at_ms);

CREATE TABLE outbox (
  id TEXT PRIMARY KEY, suggestion BIGINT NOT NULL, adapter TEXT NOT NULL, payload TEXT NOT NULL,
  state TEXT NOT NULL, attempts INTEGER NOT NULL, next_ms BIGINT NOT NULL, created_ms BIGINT NOT NULL
);
CREATE INDEX outbox_next ON outbox (state, next_ms);
CREATE TABLE deliveries (
  id {serial}, message TEXT NOT NULL, at_ms BIGINT NOT NULL, status INTEGER, error TEXT NOT NULL,
  took_ms INTEGER NOT NULL
);
CREATE TABLE switched_off (adapter TEXT PRIMARY KEY, since_ms BIGINT NOT NULL, why TEXT NOT NULL);

-- Keyed digests of people who were forgotten, so that a late event or an old model does not bring
-- them back. Without the key in meta they say nothing.
CREATE TABLE forgotten (digest TEXT PRIMARY KEY, at_ms BIGINT NOT NULL);
CREATE TABLE models (
  id {serial}, name TEXT NOT NULL UNIQUE, created_ms BIGINT NOT NULL, state TEXT NOT NULL,
  judged TEXT NOT NULL
);
