-- What a person could reach by a trick: names of their own in place of the system's, and repositories of others.
SET search_path = team, pg_catalog;

-- A function that acts as the owner looks into the schema of temporary objects last: otherwise first, for types.
DO $$
DECLARE one regprocedure;
BEGIN
  FOR one IN SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
             WHERE n.nspname = 'team' AND p.proconfig::text LIKE '%search_path=pg_catalog%' LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', one);
  END LOOP;
  EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
END $$;

-- A right that was given by a name ends when somebody else's folder joins: they may call something else so.
ALTER TABLE may_read ADD COLUMN by_name boolean NOT NULL DEFAULT true;

-- A repository that gets another remote is another one: who may read it, and whose folders it has, was said of the old
-- one. The others' folders come back with their next push.
CREATE OR REPLACE FUNCTION join_repository(folders bigint[], called text, at_remote text, how text, names text[])
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
