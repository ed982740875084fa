-- What the questions need of SQLite and PostgreSQL lacks, under SQLite's names.
SET search_path = team, pg_catalog;

CREATE FUNCTION lower(given text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT pg_catalog.lower(given COLLATE "C") $$;
CREATE FUNCTION instr(given text, part text) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT strpos(given COLLATE "C", part COLLATE "C") > 0 $$;
CREATE FUNCTION json_each(list text) RETURNS TABLE (value bigint) IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT one::bigint FROM jsonb_array_elements_text(list::jsonb) one $$;

CREATE FUNCTION counted(sum bigint, holds boolean) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT CASE WHEN holds IS NULL THEN sum ELSE coalesce(sum, 0) + holds::int END $$;
CREATE AGGREGATE sum(boolean) (SFUNC = counted, STYPE = bigint);
CREATE AGGREGATE max(boolean) (SFUNC = boolor_statefunc, STYPE = boolean);
CREATE AGGREGATE min(boolean) (SFUNC = booland_statefunc, STYPE = boolean);

CREATE FUNCTION joined(list text, one text, by text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT CASE WHEN one IS NULL THEN list WHEN list IS NULL THEN one ELSE list || by || one END $$;
CREATE FUNCTION joined(list text, one text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT team.joined(list, one, ',') $$;
CREATE FUNCTION joined(list text, one bigint) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT team.joined(list, one::text, ',') $$;
CREATE AGGREGATE group_concat(text) (SFUNC = joined, STYPE = text);
CREATE AGGREGATE group_concat(bigint) (SFUNC = joined, STYPE = text);
CREATE AGGREGATE group_concat(text, text) (SFUNC = joined, STYPE = text);
