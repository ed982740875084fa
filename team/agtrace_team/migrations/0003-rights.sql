-- Who sees and writes what. The owner of these tables sees everything; everybody else is a person, by login. A function
-- that acts as the owner looks into the schema of temporary objects last: otherwise first, for types.
SET search_path = team, pg_catalog;

DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'agtrace_read') THEN CREATE ROLE agtrace_read NOLOGIN; END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'agtrace_push') THEN CREATE ROLE agtrace_push NOLOGIN; END IF;
END $$;

CREATE FUNCTION me() RETURNS bigint STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql
  AS $$ SELECT id FROM team.person WHERE login = session_user $$;
CREATE FUNCTION pusher() RETURNS bigint STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql
  AS $$ SELECT id FROM team.person WHERE login = session_user AND may_push $$;
CREATE FUNCTION my_repositories() RETURNS SETOF bigint STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql
  AS $$ SELECT repository_id FROM team.may_read WHERE person_id = team.me() $$;
-- Who asks may leave out what other people pushed (`agtrace.only`, a login). It only ever narrows what is seen.
CREATE FUNCTION asked_for() RETURNS bigint STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql AS $$
  SELECT CASE WHEN coalesce(current_setting('agtrace.only', true), '') != ''
    THEN coalesce((SELECT p.id FROM team.person p WHERE p.login = current_setting('agtrace.only', true)), 0) END $$;
CREATE FUNCTION visible() RETURNS SETOF bigint STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql AS $$
  SELECT s.id FROM team.session s WHERE (s.person_id = (SELECT team.me())
      OR s.audience = 'team' AND (SELECT team.me()) IS NOT NULL
      OR s.audience = 'project' AND s.repository_id IN (SELECT team.my_repositories()))
    AND ((SELECT team.asked_for()) IS NULL OR s.person_id = (SELECT team.asked_for())) $$;

-- Whether a session's machine, file and project are the person's own: whoever refers to one sees it.
CREATE FUNCTION is_mine(machine bigint, file bigint, project bigint) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE sql
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT 1 FROM team.machine m WHERE m.id = machine AND m.person_id = team.pusher())
    AND EXISTS (SELECT 1 FROM team.file f JOIN team.machine m ON m.id = f.machine_id
      WHERE f.id = file AND m.person_id = team.pusher())
    AND (project IS NULL OR EXISTS (
      SELECT 1 FROM team.project p WHERE p.id = project AND p.person_id = team.pusher())) $$;

ALTER TABLE session ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON session FOR SELECT USING (
  (person_id = (SELECT me()) OR audience = 'team' AND (SELECT me()) IS NOT NULL
    OR audience = 'project' AND repository_id IN (SELECT my_repositories()))
  AND ((SELECT asked_for()) IS NULL OR person_id = (SELECT asked_for())));
CREATE POLICY put ON session FOR INSERT WITH CHECK (
  person_id = (SELECT pusher()) AND is_mine(machine_id, file_id, project_id));
CREATE POLICY change ON session FOR UPDATE USING (person_id = (SELECT pusher()))
  WITH CHECK (person_id = (SELECT pusher()) AND is_mine(machine_id, file_id, project_id));
CREATE POLICY drop_own ON session FOR DELETE USING (person_id = (SELECT pusher()));

-- What belongs to a session is seen by those who see it, and written by the person whose it is.
DO $$
DECLARE owned text;
BEGIN
  FOREACH owned IN ARRAY ARRAY['turn', 'event', 'token_usage', 'block', 'kin', 'agent_start', 'naming', 'request',
    'touched', 'landmark', 'clue', 'model_usage', 'name_use', 'ranked_event']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', owned);
    EXECUTE format('CREATE POLICY see ON %1$I FOR SELECT USING (EXISTS (
      SELECT 1 FROM session s WHERE s.id = %1$I.session_id))', owned);
    EXECUTE format('CREATE POLICY put ON %1$I FOR INSERT WITH CHECK (EXISTS (
      SELECT 1 FROM session s WHERE s.id = %1$I.session_id AND s.person_id = (SELECT pusher())))', owned);
    EXECUTE format('CREATE POLICY change ON %1$I FOR UPDATE USING (EXISTS (
      SELECT 1 FROM session s WHERE s.id = %1$I.session_id AND s.person_id = (SELECT pusher())))', owned);
    EXECUTE format('CREATE POLICY drop_own ON %1$I FOR DELETE USING (EXISTS (
      SELECT 1 FROM session s WHERE s.id = %1$I.session_id AND s.person_id = (SELECT pusher())))', owned);
  END LOOP;
  FOREACH owned IN ARRAY ARRAY['block_data', 'block_tool']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', owned);
    EXECUTE format('CREATE POLICY see ON %1$I FOR SELECT USING (EXISTS (
      SELECT 1 FROM block b WHERE b.id = %1$I.block_id))', owned);
    EXECUTE format('CREATE POLICY put ON %1$I FOR INSERT WITH CHECK (EXISTS (
      SELECT 1 FROM block b JOIN session s ON s.id = b.session_id
      WHERE b.id = %1$I.block_id AND s.person_id = (SELECT pusher())))', owned);
  END LOOP;
END $$;

ALTER TABLE path ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON path FOR SELECT USING (EXISTS (SELECT 1 FROM session s WHERE s.id = owner));
CREATE POLICY put ON path FOR INSERT WITH CHECK (EXISTS (
  SELECT 1 FROM session s WHERE s.id = owner AND s.person_id = (SELECT pusher())));
CREATE POLICY drop_own ON path FOR DELETE USING (EXISTS (
  SELECT 1 FROM session s WHERE s.id = owner AND s.person_id = (SELECT pusher())));
ALTER TABLE name ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON name FOR SELECT USING (EXISTS (SELECT 1 FROM name_use u WHERE u.name_id = name.id));
ALTER TABLE project ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON project FOR SELECT USING (
  person_id = (SELECT me()) OR EXISTS (SELECT 1 FROM session s WHERE s.project_id = project.id));
CREATE POLICY put ON project FOR INSERT WITH CHECK (person_id = (SELECT pusher()));
CREATE POLICY change ON project FOR UPDATE USING (person_id = (SELECT pusher())) WITH CHECK (person_id = (SELECT pusher()));
CREATE POLICY drop_own ON project FOR DELETE USING (person_id = (SELECT pusher()));
ALTER TABLE repository_folder ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON repository_folder FOR SELECT USING (EXISTS (SELECT 1 FROM project p WHERE p.id = project_id));
ALTER TABLE repository ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON repository FOR SELECT USING (EXISTS (SELECT 1 FROM repository_folder f WHERE f.repository_id = id));
ALTER TABLE repository_name ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON repository_name FOR SELECT USING (EXISTS (
  SELECT 1 FROM repository_folder f JOIN project p ON p.id = f.project_id
  WHERE f.repository_id = repository_name.repository_id AND p.person_id = repository_name.person_id));
ALTER TABLE file ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON file FOR SELECT USING (
  machine_id IN (SELECT m.id FROM machine m WHERE m.person_id = (SELECT me()))
  OR EXISTS (SELECT 1 FROM session s WHERE s.file_id = file.id));
CREATE POLICY put ON file FOR INSERT WITH CHECK (
  machine_id IN (SELECT m.id FROM machine m WHERE m.person_id = (SELECT pusher())));
CREATE POLICY change ON file FOR UPDATE USING (
  machine_id IN (SELECT m.id FROM machine m WHERE m.person_id = (SELECT pusher())));
CREATE POLICY drop_own ON file FOR DELETE USING (
  machine_id IN (SELECT m.id FROM machine m WHERE m.person_id = (SELECT pusher())));
ALTER TABLE record_type ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON record_type FOR SELECT USING (EXISTS (SELECT 1 FROM file f WHERE f.id = file_id));
CREATE POLICY put ON record_type FOR INSERT WITH CHECK (EXISTS (
  SELECT 1 FROM file f JOIN machine m ON m.id = f.machine_id WHERE f.id = file_id AND m.person_id = (SELECT pusher())));
CREATE POLICY drop_own ON record_type FOR DELETE USING (EXISTS (
  SELECT 1 FROM file f JOIN machine m ON m.id = f.machine_id WHERE f.id = file_id AND m.person_id = (SELECT pusher())));
ALTER TABLE machine ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON machine FOR SELECT USING (person_id = (SELECT me()));
CREATE POLICY put ON machine FOR INSERT WITH CHECK (person_id = (SELECT pusher()));
ALTER TABLE person ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON person FOR SELECT USING ((SELECT me()) IS NOT NULL);
ALTER TABLE push ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON push FOR SELECT USING (
  machine_id IN (SELECT m.id FROM machine m WHERE m.person_id = (SELECT me())));
CREATE POLICY put ON push FOR INSERT WITH CHECK (
  machine_id IN (SELECT m.id FROM machine m WHERE m.person_id = (SELECT pusher())));
ALTER TABLE asked ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON asked FOR SELECT USING (login = session_user);
CREATE POLICY put ON asked FOR INSERT WITH CHECK (login = session_user AND (SELECT me()) IS NOT NULL);
ALTER TABLE may_read ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON may_read FOR SELECT USING (person_id = (SELECT me()));

-- The functions that look past these policies. `@>` and `@@` aren't leakproof: under a policy PostgreSQL would apply them
-- last, to every row, instead of asking the index. So these ask the index, and then leave out what isn't to be seen.
CREATE FUNCTION blocks_with(wanted smallint[]) RETURNS SETOF bigint STABLE SECURITY DEFINER LANGUAGE sql
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
  WITH found AS MATERIALIZED (SELECT b.id, b.session_id FROM team.block b WHERE b.grams @> wanted)
  SELECT found.id FROM found WHERE found.session_id IN (SELECT team.visible()) $$;
CREATE FUNCTION events_with(stems tsquery) RETURNS SETOF bigint STABLE SECURITY DEFINER LANGUAGE sql
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
  WITH found AS MATERIALIZED (SELECT r.id, r.session_id FROM team.ranked_event r WHERE r.stems @@ events_with.stems)
  SELECT found.id FROM found WHERE found.session_id IN (SELECT team.visible()) $$;

-- Raises an error for who may not push: a role of the cluster says that only for all of its databases.
CREATE FUNCTION pushing() RETURNS void STABLE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF team.pusher() IS NULL THEN
    RAISE EXCEPTION 'this login may not push' USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

-- Row ids are given out in runs, so that rows keep the order that they have in the index that they come from.
CREATE FUNCTION reserve(kind text, number bigint) RETURNS bigint VOLATILE SECURITY DEFINER LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  sequence regclass := CASE kind WHEN 'session' THEN 'team.session_id' WHEN 'event' THEN 'team.event_id'
    WHEN 'block' THEN 'team.block_id' END;
  first bigint;
BEGIN
  PERFORM team.pushing();
  PERFORM pg_advisory_xact_lock(hashtext('team.reserve'));
  first := nextval(sequence);
  PERFORM setval(sequence, first + number - 1) WHERE number > 1;
  RETURN first;
END $$;

-- Names are given out by their texts, for a session of the person's own, and shown only to those who see a session that
-- uses them: who could say by number which they use would see them all.
CREATE FUNCTION names(session bigint, texts text[]) RETURNS TABLE (id bigint, text text) VOLATILE SECURITY DEFINER LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM team.session s WHERE s.id = session AND s.person_id = team.pusher()) THEN
    RAISE EXCEPTION 'not your session' USING ERRCODE = 'insufficient_privilege';
  END IF;
  INSERT INTO team.name (text) SELECT DISTINCT t COLLATE "C" FROM unnest(texts) t ORDER BY 1 ON CONFLICT DO NOTHING;
  PERFORM 1 FROM team.name n WHERE n.text = ANY (texts) FOR KEY SHARE;
  INSERT INTO team.name_use (session_id, name_id)
    SELECT session, n.id FROM team.name n WHERE n.text = ANY (texts) ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT n.id, n.text FROM team.name n WHERE n.text = ANY (texts);
END $$;

-- Whether another person has pushed a session of this id. It tells a pusher that an id exists that they know already.
CREATE FUNCTION uid_is_taken(wanted text) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE sql
  SET search_path = pg_catalog, pg_temp
  AS $$ SELECT team.pusher() IS NOT NULL AND EXISTS (
    SELECT 1 FROM team.session s WHERE s.uid = wanted AND s.person_id IS DISTINCT FROM team.me()) $$;

-- The repository of one's own folders: that of the same remote, whoever has it; else one of their own. Its number is
-- that of its first folder, as in an index.
-- One that gets another remote is another one: who may read it, and whose folders it has, was said of the old one. The
-- others' folders come back with their next push.
CREATE FUNCTION join_repository(folders bigint[], called text, at_remote text, how text, names text[])
RETURNS bigint VOLATILE SECURITY DEFINER LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE found bigint; is_another boolean := false;
BEGIN
  IF EXISTS (SELECT 1 FROM unnest(folders) f LEFT JOIN team.project p ON p.id = f AND p.person_id = team.pusher()
             WHERE p.id IS NULL) OR coalesce(cardinality(folders), 0) = 0 THEN
    RAISE EXCEPTION 'not your folders' USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('team.repository'));
  SELECT r.id INTO found FROM team.repository r WHERE at_remote IS NOT NULL AND r.remote = at_remote;
  IF found IS NULL THEN
    SELECT f.repository_id INTO found FROM team.repository_folder f JOIN team.repository r ON r.id = f.repository_id
    WHERE f.project_id = ANY (folders) AND (r.remote IS NULL OR at_remote IS NULL) ORDER BY 1 LIMIT 1;
    is_another := found IS NOT NULL AND at_remote IS NOT NULL;
  END IF;
  IF found IS NULL THEN
    SELECT min(f) INTO found FROM unnest(folders) f;
    is_another := EXISTS (SELECT 1 FROM team.repository r WHERE r.id = found AND r.remote IS DISTINCT FROM at_remote);
    INSERT INTO team.repository VALUES (found, called, at_remote, how)
      ON CONFLICT (id) DO UPDATE SET name = called, remote = at_remote, made = how;
  ELSE
    UPDATE team.repository r SET remote = at_remote, made = how, name = called WHERE r.id = found AND r.remote IS NULL;
  END IF;
  IF is_another THEN
    DELETE FROM team.may_read m WHERE m.repository_id = found;
    UPDATE team.session s SET repository_id = s.project_id
      WHERE s.repository_id = found AND s.project_id <> ALL (folders);
    DELETE FROM team.repository_name n WHERE n.repository_id = found;
    DELETE FROM team.repository_folder f WHERE f.repository_id = found AND f.project_id <> ALL (folders);
  END IF;
  IF NOT EXISTS (SELECT 1 FROM team.repository_folder f JOIN team.project p ON p.id = f.project_id
                 WHERE f.repository_id = found AND p.person_id = team.me()) THEN
    DELETE FROM team.may_read m WHERE m.repository_id = found AND m.by_name;
  END IF;
  INSERT INTO team.repository_folder SELECT f, found FROM unnest(folders) f
    ON CONFLICT (project_id) DO UPDATE SET repository_id = found;
  INSERT INTO team.repository_name SELECT found, n, team.me() FROM unnest(names) n ON CONFLICT DO NOTHING;
  UPDATE team.session s SET repository_id = found WHERE s.project_id = ANY (folders) AND s.person_id = team.me();
  RETURN found;
END $$;

-- What no session uses any more goes: a person's own folders and files, and the names of what is gone for all.
CREATE FUNCTION sweep() RETURNS void VOLATILE SECURITY DEFINER LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM team.project p WHERE p.person_id = team.pusher()
    AND NOT EXISTS (SELECT 1 FROM team.session s WHERE s.project_id = p.id);
  DELETE FROM team.file f WHERE NOT EXISTS (SELECT 1 FROM team.session s WHERE s.file_id = f.id)
    AND f.machine_id IN (SELECT m.id FROM team.machine m WHERE m.person_id = team.pusher());
  DELETE FROM team.repository_name n WHERE NOT EXISTS (
    SELECT 1 FROM team.repository_folder f JOIN team.project p ON p.id = f.project_id
    WHERE f.repository_id = n.repository_id AND p.person_id = n.person_id);
  DELETE FROM team.may_read r WHERE NOT EXISTS (
    SELECT 1 FROM team.repository_folder f WHERE f.repository_id = r.repository_id);
  DELETE FROM team.repository r WHERE NOT EXISTS (
    SELECT 1 FROM team.repository_folder f WHERE f.repository_id = r.id);
  DELETE FROM team.name WHERE id IN (
    SELECT n.id FROM team.name n WHERE NOT EXISTS (SELECT 1 FROM team.name_use u WHERE u.name_id = n.id)
    FOR UPDATE SKIP LOCKED) $$;

-- When somebody asked isn't theirs to say, as who it was isn't.
CREATE FUNCTION stamp_asked() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.at := now();
  RETURN NEW;
END $$;
CREATE TRIGGER stamp BEFORE INSERT ON asked FOR EACH ROW EXECUTE FUNCTION stamp_asked();

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA team FROM PUBLIC;
GRANT USAGE ON SCHEMA team TO agtrace_read, agtrace_push;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA team TO agtrace_read, agtrace_push;
REVOKE EXECUTE ON FUNCTION sweep(), uid_is_taken(text), reserve(text, bigint), names(bigint, text[]), join_repository(bigint[], text, text, text, text[]) FROM agtrace_read;
GRANT SELECT ON ALL TABLES IN SCHEMA team TO agtrace_read, agtrace_push;
GRANT INSERT ON asked TO agtrace_read, agtrace_push;
GRANT INSERT, UPDATE, DELETE ON session, turn, event, token_usage, block, kin, agent_start, naming, request, path, touched,
  landmark, clue, model_usage, ranked_event, block_data, block_tool, project, file, record_type TO agtrace_push;
GRANT INSERT ON machine, push TO agtrace_push;
GRANT DELETE ON name_use TO agtrace_push;
DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$;
