-- What a provider's cost is about: nothing, these responses, or the session and its sub-agents as a whole.
SET search_path = team, pg_catalog;

ALTER TABLE model_usage ALTER COLUMN told TYPE bigint USING told::integer;
