"""The tables of the index, with comments on tables and columns.

What an answer needs is stored here, and can be made again from the logs and the archive of those that agents delete. If
the tables change, raise `VERSION`: `agtrace index` then rebuilds older indexes (`run/rebuild.py`).
"""

from __future__ import annotations

VERSION = 13
"""Kept in the file as `user_version`."""

TABLES = """
-- Facts about the index itself: 'reading' (the version of the code that read the logs), 'built' ('1' once
-- a run over all roots has finished, '0' until then), 'forgotten' (the stamp of the tombstones that were applied),
-- 'scrub' (where traces of deleted texts remain: words, pages or wal; absent if there are none), 'root_forgotten' ('1'
-- if a root was a forgotten log or was removed: an index without roots then doesn't take the agents' homes instead),
-- 'removed_roots' (those of the agents' homes that were removed, as JSON).
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- The files and folders that are kept fresh, as given to `agtrace index`.
CREATE TABLE root (
  path TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Every file seen below the roots, including those that aren't logs agtrace knows.
CREATE TABLE file (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL,          -- log | empty | unrecognized | unreadable | skipped | duplicate | waiting
                                 -- | container (its logs have rows of their own, with paths below its path)
                                 -- | forgotten (path is then a digest of the path)
  reason TEXT,                   -- why it isn't read, or not completely, as a sentence
  provider TEXT,                 -- the agent: claude_code, codex, gemini ...; null while unknown
  gone INTEGER NOT NULL DEFAULT 0, -- 1: the file vanished, its rows are archived
  stamp TEXT NOT NULL,           -- size, mtime, ctime and inode as last seen: if equal, the file is unchanged
  size INTEGER NOT NULL,         -- bytes on disk as last seen
  read_to INTEGER NOT NULL DEFAULT 0,   -- bytes of (decompressed) content that have been indexed
  lines INTEGER NOT NULL DEFAULT 0,     -- lines read
  records INTEGER NOT NULL DEFAULT 0,   -- JSON records read
  unreadable_lines INTEGER NOT NULL DEFAULT 0, -- lines that aren't JSON, or are too long
  pending_bytes INTEGER NOT NULL DEFAULT 0,    -- bytes of a half-written last line that waits for its rest
  head BLOB,                     -- hash of the first head_size bytes: recognises a moved log
  head_size INTEGER NOT NULL DEFAULT 0,
  anchor BLOB,                   -- hash of the bytes before read_to: distinguishes an append from a rewrite
  anchor_size INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX file_gone ON file (id) WHERE gone;
CREATE TRIGGER file_dropped AFTER DELETE ON file BEGIN
  DELETE FROM file_state WHERE file_id = old.id;
END;

-- The state of a log's parser between two runs (JSON, zstd).
CREATE TABLE file_state (
  file_id INTEGER PRIMARY KEY,
  state BLOB NOT NULL
);

-- Types of records in a log that agtrace doesn't know (status 'unknown') or leaves out ('skipped').
CREATE TABLE record_type (
  file_id INTEGER NOT NULL,
  status TEXT NOT NULL,
  type TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_line INTEGER NOT NULL,
  PRIMARY KEY (file_id, status, type)
) WITHOUT ROWID;

-- hash is the SHA-256 of the project root's real path, in hexadecimal; root_path is null if only Gemini CLI's logs name
-- the project, by its hash.
CREATE TABLE project (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  root_path TEXT
);

-- What folders (rows of project) are one repository: worktrees, clones, former names. Made anew from the clues and the
-- files that calls named whenever these change (agtrace_indexer.index.membership).
CREATE TABLE repository (
  id INTEGER PRIMARY KEY,        -- the smallest id of its folders
  name TEXT NOT NULL,
  remote TEXT,                   -- host/owner/name in lower case; null if nothing tells
  made TEXT NOT NULL             -- how its folders were joined, the least sure of them: remote | shared | name, or
                                 -- folder if it has but one, whose remote is unknown
);
CREATE TABLE repository_folder (
  project_id INTEGER PRIMARY KEY,
  repository_id INTEGER NOT NULL
);

-- What a repository is called, in lower case: its name, with and without its owner, its folders, and former names.
CREATE TABLE repository_name (
  repository_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (repository_id, name)
) WITHOUT ROWID;

-- The work of one agent in one log. A log with inline sub-agents has several sessions, distinguished by thread.
-- Times are milliseconds since 1970 UTC; null means unknown.
CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  file_id INTEGER NOT NULL,
  thread TEXT NOT NULL,
  provider TEXT NOT NULL,
  uid TEXT NOT NULL,             -- the provider's id, with a visible suffix if several logs share it
  own_id TEXT NOT NULL,          -- the provider's id as in the log
  project_id INTEGER,
  parent_id TEXT,                -- the provider's id of the session that started this one
  kind TEXT NOT NULL,            -- main | subagent | fork | warmup (a log left by a mere start of an agent)
  agent_type TEXT,
  cwd TEXT,
  branch TEXT,
  version TEXT,
  model TEXT,
  title TEXT,
  snippet TEXT,                  -- the first human request, at most 200 characters
  started_at INTEGER,
  ended_at INTEGER,
  event_count INTEGER NOT NULL DEFAULT 0,   -- events that are not superseded, without copies
  turn_count INTEGER NOT NULL DEFAULT 0,
  tool_calls INTEGER NOT NULL DEFAULT 0,
  failed_calls INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER,          -- sums over token_usage; null if no response had figures
  output_tokens INTEGER,
  total_tokens INTEGER,
  incomplete_usage INTEGER NOT NULL DEFAULT 0, -- responses for which the log has only placeholder figures
  -- Family. parent_session: the session that started this one, was copied into it or continues in it; determined
  -- only for logs that still exist. started_by: the event of the call that started it, in parent_session.
  parent_session INTEGER,
  started_by INTEGER,
  started_call INTEGER,          -- the event of that call if it is in the same log
  continues INTEGER,             -- identity of the line of another log that it continues from
  description TEXT,              -- what a sub-agent was started for
  replayed_to INTEGER NOT NULL DEFAULT 0,   -- events before this index are a replay, according to the log
  -- Events before this index are a replay, judging by their times, if they can't be compared with the parent's; null:
  -- nothing is compared.
  clustered_to INTEGER,
  own_title TEXT,                -- the title in its own log; title may come from another log
  title_rank INTEGER NOT NULL DEFAULT 0,    -- how good the source of own_title is
  -- Sums: all except the copied_ ones exclude copies.
  responses INTEGER NOT NULL DEFAULT 0,     -- model responses with token figures
  active_ms INTEGER NOT NULL DEFAULT 0,     -- sum over its turns
  copied_events INTEGER NOT NULL DEFAULT 0,
  copied_turns INTEGER NOT NULL DEFAULT 0,
  copied_tool_calls INTEGER NOT NULL DEFAULT 0,
  copied_failed_calls INTEGER NOT NULL DEFAULT 0,
  copied_responses INTEGER NOT NULL DEFAULT 0,
  copied_tokens INTEGER NOT NULL DEFAULT 0,
  -- pending: what has to be done about its family: 1 if the session grew, 2 if it or its id is new, or a relative
  -- vanished.
  -- compared_to: the events from this index on haven't been compared with other sessions yet; below 0 if another
  -- session has all of this one and is read in its place: -1 of a main session, -2 of a fork, -3 of a sub-agent.
  pending INTEGER NOT NULL DEFAULT 2,
  compared_to INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX session_uid ON session (uid);
CREATE INDEX session_file ON session (file_id);
CREATE INDEX session_own_id ON session (own_id, uid);
CREATE INDEX session_started ON session (started_at, id);
CREATE INDEX session_parent ON session (parent_session) WHERE parent_session IS NOT NULL;
CREATE INDEX session_parent_id ON session (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX session_pending ON session (id) WHERE pending;
CREATE INDEX session_continues ON session (continues) WHERE continues IS NOT NULL;
CREATE INDEX session_named ON session (id) WHERE title IS NOT own_title;

-- From one human request to the next; turn_index counts 0, 1, 2 ... within the session. The sums are those of its
-- log, copies included; input_tokens is uncached input, as everywhere.
CREATE TABLE turn (
  session_id INTEGER NOT NULL,
  turn_index INTEGER NOT NULL,
  first_event INTEGER NOT NULL,
  last_event INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  step_count INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  failed_calls INTEGER NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  request_event INTEGER,         -- the request that opened it; null if a response did
  copied INTEGER NOT NULL DEFAULT 0,    -- 1: all of it is copied
  active_ms INTEGER NOT NULL DEFAULT 0, -- from the request to the last of its steps' events
  responses INTEGER NOT NULL DEFAULT 0,
  incomplete_usage INTEGER NOT NULL DEFAULT 0,
  cache_creation_5m_tokens INTEGER,
  cache_creation_1h_tokens INTEGER,
  cache_read_tokens INTEGER,
  reasoning_tokens INTEGER,
  PRIMARY KEY (session_id, turn_index)
) WITHOUT ROWID;

-- Recurring short strings: names of tools and programs, kinds of user texts, kinds of notifications.
CREATE TABLE name (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
);

-- One row per event. id is never reused and grows in the order of indexing: cursors use it to mark a snapshot. The
-- text and the payload are in the block that covers event_index.
CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,  -- 0, 1, 2 ... in file order
  type INTEGER NOT NULL,         -- position in codes.EVENT_TYPE_CODES
  ts INTEGER NOT NULL,           -- ms; an event without a time takes the one before it; 0 unknown
  turn_index INTEGER,            -- null before the first turn
  step_index INTEGER,            -- within the turn; null for events that aren't part of a model response
  name_id INTEGER,               -- tool, user kind or notification kind
  outcome INTEGER,               -- position in codes.OUTCOME_CODES, on a tool result and on the call it answers
  link INTEGER,                  -- event_index of the result of a call, of the call of a result
  line INTEGER NOT NULL,         -- origin in the file: line (1, 2 ...), byte offset, length in bytes
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  superseded_by INTEGER,         -- id of the event that replaced or retracted this one; below 0 if it was rolled back
  -- Identifies it across logs (agtrace_indexer.events.identity): above 0 among all of them, below 0 only between a
  -- log and the one that it claims to replay; null if nothing identifies it.
  identity INTEGER,
  -- The event in an older log that this one repeats (a fork, a replayed beginning); 0 if that log is not
  -- indexed; null if it isn't a copy. Copies can be read and found, but don't count in the sums of their session.
  copy_of INTEGER,
  duration_ms INTEGER,           -- from a call to its result, on both; null if unknown, or if a human was asked
  own INTEGER,                   -- 1 on calls to agtrace itself and on their results: search leaves them out
  program_id INTEGER             -- on a call that runs a command: its first program, after any cd
);
CREATE UNIQUE INDEX event_place ON event (session_id, event_index);
CREATE INDEX event_identity ON event (identity) WHERE identity > 0;
CREATE INDEX event_own ON event (session_id, event_index) WHERE own = 1;
CREATE INDEX event_failed ON event (session_id, event_index) WHERE outcome = 1; -- OUTCOME_CODE[Outcome.FAILED]

-- The figures of an event of type TokenUsage; null means unknown. Meanings: agtrace_schema.events.TokenUsage.
CREATE TABLE token_usage (
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,
  response_id TEXT,
  model TEXT,
  input_tokens INTEGER,
  cache_creation_5m_tokens INTEGER,
  cache_creation_1h_tokens INTEGER,
  cache_read_tokens INTEGER,
  output_tokens INTEGER,
  reasoning_tokens INTEGER,
  complete INTEGER NOT NULL,
  context_window INTEGER,
  speed TEXT,                    -- what was paid for ('fast us 2_searches sum'); null is standard
  cost_usd REAL,                 -- the cost according to the provider itself
  PRIMARY KEY (session_id, event_index)
) WITHOUT ROWID;

-- A run of consecutive events of one session: about 64 KB of text, the unit of search. An id is never reused, as the
-- word index may still name a block that has been deleted.
CREATE TABLE block (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL,
  first_index INTEGER NOT NULL,
  event_count INTEGER NOT NULL,
  t0 INTEGER NOT NULL,           -- smallest and largest ts of its events
  t1 INTEGER NOT NULL,
  text_size INTEGER NOT NULL,    -- bytes before compression
  types INTEGER NOT NULL,        -- the types of its events, bit 1 << code: search can skip it without opening it
  words INTEGER NOT NULL DEFAULT 0   -- 0: not in the word index, 1: in it, but not all of its words are in the
                                 -- vocabulary, 2: found by its words, 3: never in it (a word is too long)
);
CREATE UNIQUE INDEX block_place ON block (session_id, first_index);
CREATE INDEX block_newest ON block (t1, id, t0, session_id);
CREATE INDEX block_unworded ON block (words, id) WHERE words != 2;

-- text: the searchable texts, redacted, UTF-8, each terminated by a NUL, and then a JSON array with, for each event,
-- whatever isn't in its text, or null (zstd). ends: position of each NUL (32-bit little-endian).
CREATE TABLE block_data (
  block_id INTEGER PRIMARY KEY,
  ends BLOB NOT NULL,
  text BLOB NOT NULL
);

-- The tools that have calls or results in a block.
CREATE TABLE block_tool (
  block_id INTEGER NOT NULL,
  name_id INTEGER NOT NULL,
  PRIMARY KEY (block_id, name_id)
) WITHOUT ROWID;

-- Pairs of sessions that share identified events, in both orders.
CREATE TABLE kin (
  session_id INTEGER NOT NULL,
  other_id INTEGER NOT NULL,
  PRIMARY KEY (session_id, other_id)
) WITHOUT ROWID;

-- Results that name the sub-agent session that the call started (agent_id is its own_id).
CREATE TABLE agent_start (
  agent_id TEXT NOT NULL,
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,
  PRIMARY KEY (agent_id, session_id, event_index)
) WITHOUT ROWID;
CREATE INDEX agent_start_session ON agent_start (session_id);

-- Titles that a log gives to the session with a certain line, which is often in another log.
CREATE TABLE naming (
  session_id INTEGER NOT NULL,   -- the session whose log has the title
  line INTEGER NOT NULL,         -- identity of the line
  title TEXT NOT NULL,
  PRIMARY KEY (session_id, line)
) WITHOUT ROWID;

-- The beginnings of requests, at most 200 characters, by which turns and sessions are called.
CREATE TABLE request (
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (session_id, event_index)
) WITHOUT ROWID;

-- Files named in the arguments of tool calls.
CREATE TABLE path (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
);
CREATE TABLE touched (
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,
  path_id INTEGER NOT NULL,
  access TEXT NOT NULL,          -- read | write
  PRIMARY KEY (session_id, event_index, path_id)
) WITHOUT ROWID;

-- What sessions did: commits, pull requests, test runs and so on (agtrace_schema.landmarks), each on the event that did
-- it: a call, or the notification of a compaction or of a link.
CREATE TABLE landmark (
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,
  number INTEGER NOT NULL,       -- 0, 1, 2 ... within the event
  kind TEXT NOT NULL,            -- commit | branch | pull_request | issue | test_run | build | release | question
                                 -- | compaction
  name TEXT,                     -- hash, number, branch, program, what was released or asked; null where nothing tells
  detail TEXT,                   -- subject, address, counts or answer
  verdict TEXT,                  -- passed | failed | unknown | created | merged | closed | reopened | linked
                                 -- | answered | unanswered
  evidence TEXT NOT NULL,        -- record | exit_code | output: what tells of it, or decided the verdict
  PRIMARY KEY (session_id, event_index, number)
) WITHOUT ROWID;
CREATE INDEX landmark_named ON landmark (kind, name);

-- What events tell about the repository of their session: the remote that the log records, addresses that git and
-- programs of forges printed, hashes of commits.
CREATE TABLE clue (
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,
  kind TEXT NOT NULL,            -- remote | shown | commit | root
  value TEXT NOT NULL,           -- host/owner/name in lower case, the first twelve digits of a hash, or the path of a
                                 -- folder of which the log gives only the hash
  PRIMARY KEY (session_id, event_index, kind, value)
) WITHOUT ROWID;

-- What the rules for secrets found in events, in order, also where several events have the same value.
CREATE TABLE secret (
  session_id INTEGER NOT NULL,
  event_index INTEGER NOT NULL,
  number INTEGER NOT NULL,       -- 0, 1, 2 ... within the event, at most 100
  kind TEXT NOT NULL,            -- the word in its mask
  tier TEXT NOT NULL,            -- how sure that is: definite | likely | possible, and only then not masked here
  value TEXT NOT NULL,           -- a keyed digest of it (agtrace_indexer.redact.fingerprint)
  PRIMARY KEY (session_id, event_index, number)
) WITHOUT ROWID;

-- Token sums of a session by model, speed and size of the request, from which totals and costs are calculated.
-- context_class: how many of codes.CONTEXT_CLASSES the whole input of a request exceeds, and 4 for each of
-- codes.PRICE_DAYS that had come. Copies don't count.
CREATE TABLE model_usage (
  session_id INTEGER NOT NULL,
  model TEXT NOT NULL,           -- '' if the log doesn't name it
  speed TEXT NOT NULL,           -- '' is standard
  context_class INTEGER NOT NULL,
  told INTEGER NOT NULL,         -- the provider states the cost of these responses (1), of the session and its
                                 -- sub-agents as a whole (2)
  responses INTEGER NOT NULL,
  incomplete INTEGER NOT NULL,   -- responses for which the log has only placeholder figures, or none
  input_tokens INTEGER,
  cache_creation_5m_tokens INTEGER,
  cache_creation_1h_tokens INTEGER,
  cache_read_tokens INTEGER,
  output_tokens INTEGER,
  reasoning_tokens INTEGER,
  cost_usd REAL,                 -- their cost according to the provider
  PRIMARY KEY (session_id, model, speed, context_class, told)
) WITHOUT ROWID;

-- What the rules of health found in a session, once somebody asked. It no longer holds if the state of the session or
-- the rules (with the prices) are others than these.
CREATE TABLE health (
  session_id INTEGER PRIMARY KEY,
  state TEXT NOT NULL,           -- JSON
  rules TEXT NOT NULL,           -- a digest
  found BLOB NOT NULL            -- agtrace.health.examination.Examination (JSON, zstd)
);

-- Sums over the first events of a long session, so that its totals aren't computed from its beginning when it grows; no
-- row once one of these events has changed (agtrace_indexer.index.sums).
CREATE TABLE sum_so_far (
  session_id INTEGER PRIMARY KEY,
  before INTEGER NOT NULL,       -- the event_index of the first event that isn't contained
  sums TEXT NOT NULL             -- JSON
);
"""

WORDS = """
-- The words in each piece of a block: rowid = block * 32 + piece. Derived from the blocks, it can be dropped and
-- rebuilt. A word is a run of letters, digits, `_`, `.`, `/`, `-` and any characters that aren't ASCII.
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_./-'"
);
CREATE VIRTUAL TABLE word USING fts5vocab(words, row);

-- The vocabulary: the words of `words`, each between line breaks. base: 1 for those of the last full listing, 0
-- for words added since, some of them perhaps again.
CREATE TABLE vocabulary (
  id INTEGER PRIMARY KEY,
  base INTEGER NOT NULL,
  words BLOB NOT NULL,
  checksum INTEGER NOT NULL      -- CRC-32
);
"""
"""The word index: made if SQLite has FTS5; without it search reads the blocks."""

RANKED = """
-- The words of events, which FTS5 ranks by BM25: rowid = event.id, the event may be gone. Derived from the blocks, it
-- can be dropped and made again.
CREATE VIRTUAL TABLE ranked USING fts5(words, content='', tokenize='porter unicode61');
"""
"""The ranking index: made if SQLite has FTS5; without it search is literal."""
