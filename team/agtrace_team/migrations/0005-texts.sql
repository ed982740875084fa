-- The rest of the payloads of a block's events follows their texts.
SET search_path = team, pg_catalog;

UPDATE block_data SET text = text || payload;
ALTER TABLE block_data DROP COLUMN payload;
