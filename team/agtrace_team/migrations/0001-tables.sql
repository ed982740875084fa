-- The tables of a team, by its owner. The questions of agtrace read those that an index has, under the same names, with
-- the columns that questions ask for; what is the team's own comes first.
CREATE SCHEMA team;
REVOKE ALL ON SCHEMA team FROM PUBLIC;
SET search_path = team, pg_catalog;

-- A person is a role of this cluster: who someone is, PostgreSQL knows from the login, never from what a client says.
CREATE TABLE person (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  login name NOT NULL UNIQUE,
  shown text COLLATE "C" NOT NULL,
  may_push boolean NOT NULL
);
CREATE TABLE machine (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  person_id bigint NOT NULL REFERENCES person,
  uid text COLLATE "C" NOT NULL,
  shown text COLLATE "C" NOT NULL,
  UNIQUE (person_id, uid)
);

-- Who may read the sessions of a repository that are there for its project.
CREATE TABLE may_read (
  repository_id bigint NOT NULL,
  person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
  by_name boolean NOT NULL DEFAULT true,   -- it ends when somebody else's folder joins: they may call something else so
  PRIMARY KEY (repository_id, person_id)
);

-- Who asked what kind of question, without its text; who pushed how much, and what was masked.
CREATE TABLE asked (
  at timestamptz NOT NULL DEFAULT now(),
  login name NOT NULL DEFAULT session_user,
  kind text COLLATE "C" NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$')
);
CREATE INDEX asked_at ON asked USING brin (at);
CREATE TABLE push (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  machine_id bigint NOT NULL REFERENCES machine,
  at timestamptz NOT NULL DEFAULT now(),
  sessions bigint NOT NULL,
  events bigint NOT NULL,
  bytes bigint NOT NULL,
  removed bigint NOT NULL,
  masked jsonb NOT NULL
);

CREATE TABLE meta (
  key text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL
);
INSERT INTO meta VALUES ('built', '1');
-- What whoever reads has to know (`agtrace_team.connection.TABLES`): a step that changes what rows mean raises it.
INSERT INTO meta VALUES ('tables', '1');

-- Nothing is kept fresh from here.
CREATE VIEW root AS SELECT ''::text AS path WHERE false;

CREATE SEQUENCE session_id;
CREATE SEQUENCE event_id;
CREATE SEQUENCE block_id;

CREATE TABLE file (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  machine_id bigint NOT NULL REFERENCES machine,
  path text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  reason text COLLATE "C",
  provider text COLLATE "C",
  gone boolean NOT NULL DEFAULT false,
  size bigint NOT NULL,
  lines bigint NOT NULL DEFAULT 0,
  records bigint NOT NULL DEFAULT 0,
  unreadable_lines bigint NOT NULL DEFAULT 0,
  pending_bytes bigint NOT NULL DEFAULT 0,
  UNIQUE (machine_id, path)
);

CREATE TABLE record_type (
  file_id bigint NOT NULL REFERENCES file ON DELETE CASCADE,
  status text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  first_line bigint NOT NULL,
  PRIMARY KEY (file_id, status, type)
);

CREATE TABLE project (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  person_id bigint NOT NULL REFERENCES person,
  hash text COLLATE "C" NOT NULL,
  root_path text COLLATE "C",
  UNIQUE (person_id, hash)
);

CREATE TABLE repository (
  id bigint PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  remote text COLLATE "C",
  made text COLLATE "C" NOT NULL
);

CREATE TABLE repository_folder (
  project_id bigint PRIMARY KEY REFERENCES project ON DELETE CASCADE,
  repository_id bigint NOT NULL
);
CREATE INDEX repository_folder_of ON repository_folder (repository_id);

CREATE TABLE repository_name (
  repository_id bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  person_id bigint NOT NULL REFERENCES person,   -- who calls it so
  PRIMARY KEY (repository_id, name, person_id)
);

CREATE TABLE session (
  id bigint PRIMARY KEY,
  person_id bigint NOT NULL REFERENCES person,
  machine_id bigint NOT NULL REFERENCES machine,
  pushed_uid text COLLATE "C" NOT NULL,   -- its id in the index that it was pushed from
  audience text COLLATE "C" NOT NULL CHECK (audience IN ('self', 'project', 'team')),
  repository_id bigint,
  digest bytea NOT NULL,                  -- of all of its rows: an equal one isn't pushed again
  pushed_at timestamptz NOT NULL DEFAULT now(),
  file_id bigint NOT NULL REFERENCES file,
  thread text COLLATE "C" NOT NULL,
  provider text COLLATE "C" NOT NULL,
  uid text COLLATE "C" NOT NULL,
  own_id text COLLATE "C" NOT NULL,
  project_id bigint REFERENCES project,
  parent_id text COLLATE "C",
  kind text COLLATE "C" NOT NULL,
  agent_type text COLLATE "C",
  cwd text COLLATE "C",
  branch text COLLATE "C",
  version text COLLATE "C",
  model text COLLATE "C",
  title text COLLATE "C",
  snippet text COLLATE "C",
  started_at bigint,
  ended_at bigint,
  event_count bigint NOT NULL DEFAULT 0,
  turn_count bigint NOT NULL DEFAULT 0,
  tool_calls bigint NOT NULL DEFAULT 0,
  failed_calls bigint NOT NULL DEFAULT 0,
  input_tokens bigint,
  output_tokens bigint,
  total_tokens bigint,
  incomplete_usage bigint NOT NULL DEFAULT 0,
  parent_session bigint,
  started_by bigint,
  continues bigint,
  description text COLLATE "C",
  responses bigint NOT NULL DEFAULT 0,
  active_ms bigint NOT NULL DEFAULT 0,
  copied_events bigint NOT NULL DEFAULT 0,
  copied_turns bigint NOT NULL DEFAULT 0,
  copied_tool_calls bigint NOT NULL DEFAULT 0,
  copied_failed_calls bigint NOT NULL DEFAULT 0,
  copied_responses bigint NOT NULL DEFAULT 0,
  copied_tokens bigint NOT NULL DEFAULT 0,
  UNIQUE (person_id, pushed_uid)
);
CREATE UNIQUE INDEX session_uid ON session (uid);
CREATE INDEX session_file ON session (file_id);
CREATE INDEX session_project ON session (project_id);
CREATE INDEX session_own_id ON session (own_id, uid);
CREATE INDEX session_started ON session (coalesce(started_at, 0), id);
CREATE INDEX session_parent ON session (parent_session) WHERE parent_session IS NOT NULL;

CREATE TABLE turn (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  turn_index bigint NOT NULL,
  first_event bigint NOT NULL,
  last_event bigint NOT NULL,
  started_at bigint,
  ended_at bigint,
  step_count bigint NOT NULL,
  tool_calls bigint NOT NULL,
  failed_calls bigint NOT NULL,
  input_tokens bigint,
  output_tokens bigint,
  request_event bigint,
  copied boolean NOT NULL DEFAULT false,
  active_ms bigint NOT NULL DEFAULT 0,
  responses bigint NOT NULL DEFAULT 0,
  incomplete_usage bigint NOT NULL DEFAULT 0,
  cache_creation_5m_tokens bigint,
  cache_creation_1h_tokens bigint,
  cache_read_tokens bigint,
  reasoning_tokens bigint,
  PRIMARY KEY (session_id, turn_index)
);

CREATE TABLE name (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  text text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE event (
  id bigint PRIMARY KEY,
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  event_index bigint NOT NULL,
  type bigint NOT NULL,
  ts bigint NOT NULL,
  turn_index bigint,
  step_index bigint,
  name_id bigint,
  outcome bigint,
  link bigint,
  line bigint NOT NULL,
  "offset" bigint NOT NULL,
  length bigint NOT NULL,
  superseded_by bigint,
  identity bigint,
  copy_of bigint,
  duration_ms bigint,
  own bigint,
  program_id bigint
);
CREATE UNIQUE INDEX event_place ON event (session_id, event_index);
CREATE INDEX event_own ON event (session_id, event_index) WHERE own = 1;
CREATE INDEX event_failed ON event (session_id, event_index) WHERE outcome = 1;

CREATE TABLE token_usage (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  event_index bigint NOT NULL,
  response_id text COLLATE "C",
  model text COLLATE "C",
  input_tokens bigint,
  cache_creation_5m_tokens bigint,
  cache_creation_1h_tokens bigint,
  cache_read_tokens bigint,
  output_tokens bigint,
  reasoning_tokens bigint,
  complete boolean NOT NULL,
  context_window bigint,
  speed text COLLATE "C",
  cost_usd double precision,
  PRIMARY KEY (session_id, event_index)
);

CREATE TABLE block (
  id bigint PRIMARY KEY,
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  first_index bigint NOT NULL,
  event_count bigint NOT NULL,
  t0 bigint NOT NULL,
  t1 bigint NOT NULL,
  text_size bigint NOT NULL,
  types bigint NOT NULL,
  grams smallint[] NOT NULL               -- agtrace_team.words
);
CREATE INDEX block_newest ON block (t1, id);
CREATE INDEX block_grams ON block USING gin (grams) WITH (fastupdate = on, gin_pending_list_limit = 16384);
CREATE UNIQUE INDEX block_place ON block (session_id, first_index);

CREATE TABLE block_data (
  block_id bigint PRIMARY KEY REFERENCES block ON DELETE CASCADE,
  ends bytea NOT NULL,
  text bytea NOT NULL,
  payload bytea NOT NULL
);
ALTER TABLE block_data ALTER ends SET STORAGE EXTERNAL, ALTER text SET STORAGE EXTERNAL,
  ALTER payload SET STORAGE EXTERNAL;

CREATE TABLE block_tool (
  block_id bigint NOT NULL REFERENCES block ON DELETE CASCADE,
  name_id bigint NOT NULL,
  PRIMARY KEY (block_id, name_id)
);

CREATE TABLE kin (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  other_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  PRIMARY KEY (session_id, other_id)
);

CREATE TABLE agent_start (
  agent_id text COLLATE "C" NOT NULL,
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  event_index bigint NOT NULL,
  PRIMARY KEY (agent_id, session_id, event_index)
);
CREATE INDEX agent_start_session ON agent_start (session_id);

CREATE TABLE naming (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  line bigint NOT NULL,
  title text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_id, line)
);

CREATE TABLE request (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  event_index bigint NOT NULL,
  text text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_id, event_index)
);

-- Paths are those of one session each, so that they show to those who see it. No other table that is joined with them
-- has a column `owner`.
CREATE TABLE path (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  text text COLLATE "C" NOT NULL,
  UNIQUE (owner, text)
);

CREATE TABLE touched (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  event_index bigint NOT NULL,
  path_id bigint NOT NULL,
  access text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_id, event_index, path_id)
);

CREATE TABLE landmark (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  event_index bigint NOT NULL,
  number bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  name text COLLATE "C",
  detail text COLLATE "C",
  verdict text COLLATE "C",
  evidence text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_id, event_index, number)
);
CREATE INDEX touched_path ON touched (path_id);
CREATE INDEX landmark_named ON landmark (kind, name);

CREATE TABLE clue (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  event_index bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_id, event_index, kind, value)
);

CREATE TABLE model_usage (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  model text COLLATE "C" NOT NULL,
  speed text COLLATE "C" NOT NULL,
  context_class bigint NOT NULL,
  told boolean NOT NULL,
  responses bigint NOT NULL,
  incomplete bigint NOT NULL,
  input_tokens bigint,
  cache_creation_5m_tokens bigint,
  cache_creation_1h_tokens bigint,
  cache_read_tokens bigint,
  output_tokens bigint,
  reasoning_tokens bigint,
  cost_usd double precision,
  PRIMARY KEY (session_id, model, speed, context_class, told)
);

-- Names of tools, programs and kinds are shared by all; this says whose sessions use one, so that it shows to them only.
CREATE TABLE name_use (
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  name_id bigint NOT NULL REFERENCES name,
  PRIMARY KEY (name_id, session_id)
);
CREATE INDEX name_use_session ON name_use (session_id);

-- The ranking index: the words of an event as FTS5 stems them.
CREATE TABLE ranked_event (
  id bigint PRIMARY KEY REFERENCES event ON DELETE CASCADE,
  session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  words bigint NOT NULL,
  stems tsvector NOT NULL
);
CREATE INDEX ranked_event_session ON ranked_event (session_id);
CREATE INDEX ranked_event_stems ON ranked_event USING gin (stems) WITH (fastupdate = on, gin_pending_list_limit = 16384);

-- What the planner's statistics would tell of rows that somebody may not see, and keep of rows that are gone: EXPLAIN
-- shows estimates that are made from all rows, and ANALYZE copies values into a table of its own. So no statistics are
-- kept of columns with texts, words and sessions: these are found by indexes, which need none. Those with a few known values,
-- such as `audience`, keep theirs: plans depend on them.
DO $$
DECLARE one record;
BEGIN
  FOR one IN
    SELECT c.oid::regclass AS of_table, a.attname AS named
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'team' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
      AND (a.attname = 'session_id' OR a.atttypid IN ('text'::regtype, 'pg_catalog.name'::regtype, 'bytea'::regtype,
        'jsonb'::regtype, 'tsvector'::regtype, 'smallint[]'::regtype))
      AND a.attname NOT IN ('audience', 'provider', 'kind', 'status', 'made', 'verdict', 'evidence')
  LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', one.of_table, one.named);
  END LOOP;
END $$;
