CREATE TABLE IF NOT EXISTS "@schema@"."antipode_tombstone" (t text NOT NULL, k bytea NOT NULL, l text NOT NULL, h bigint NOT NULL, PRIMARY KEY (t, k));

CREATE INDEX IF NOT EXISTS antipode_tombstone_h ON "@schema@"."antipode_tombstone" (h);

CREATE TABLE "@schema@"."@table@_ap" (k bytea PRIMARY KEY, l text NOT NULL);

COMMENT ON TABLE "@schema@"."@table@_ap" IS 'antipode 1';

CREATE OR REPLACE FUNCTION "@schema@"."antipode_merge"(given text, older text) RETURNS text
 LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $antipode$
DECLARE
  said text := split_part(given, ' ', 2);
  pattern text := split_part(given, ' ', 3);
  merged text := older;
  others text;
BEGIN
  IF given IS NOT NULL THEN
    others := array_to_string(array_remove(string_to_array(older, ','), said), ',');
    IF others IS NULL OR others = '' THEN
      RETURN said;
    END IF;
    merged := said || ',' || others;
    IF pattern <> '' AND others !~ '(^|,)[^1]|~z' THEN
      BEGIN
        merged := regexp_replace(said || ',' || regexp_replace(others, pattern, '', 'g'), ',1[0-9a-z]*(?=,|$)', '', 'g');
      EXCEPTION WHEN invalid_regular_expression THEN
        NULL;
      END;
    END IF;
  END IF;
  IF octet_length(merged) > 1024 AND strpos(merged, ',') > 0 THEN
    RETURN concat_ws(',', said, '1~isize.-');
  END IF;
  RETURN merged;
END $antipode$;

CREATE OR REPLACE FUNCTION "@schema@"."@table@_ap"() RETURNS trigger LANGUAGE plpgsql
 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $antipode$
DECLARE
  given text := substring(current_setting('antipode.lineage', true) FROM '^[0-9]{1,9} [^ ,]+ .*$');
  this_hour bigint := floor(extract(epoch FROM now()) / 3600);
  until_hour bigint := coalesce(split_part(given, ' ', 1)::bigint, this_hour + 169);
  new_key bytea;
  old_key bytea;
  older text;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    INSERT INTO "@schema@"."antipode_tombstone" AS d (t, k, l, h) SELECT '@table@', g.k, g.l, until_hour FROM (SELECT s.k, "@schema@"."antipode_merge"(given, s.l) AS l FROM "@schema@"."@table@_ap" AS s) AS g WHERE g.l IS NOT NULL ON CONFLICT (t, k) DO UPDATE SET l = CASE WHEN d.h < this_hour THEN excluded.l ELSE "@schema@"."antipode_merge"(given, concat_ws(',', excluded.l, d.l)) END, h = greatest(d.h, excluded.h);
    DELETE FROM "@schema@"."@table@_ap";
    RETURN NULL;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    new_key := @new_key@;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    old_key := @old_key@;
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF given IS NULL THEN
      DELETE FROM "@schema@"."@table@_ap" WHERE k = new_key;
    ELSE
      INSERT INTO "@schema@"."@table@_ap" AS s (k, l) VALUES (new_key, split_part(given, ' ', 2)) ON CONFLICT (k) DO UPDATE SET l = excluded.l;
    END IF;
    RETURN NULL;
  ELSIF TG_OP = 'UPDATE' AND new_key = old_key THEN
    IF given IS NOT NULL THEN
      INSERT INTO "@schema@"."@table@_ap" AS s (k, l) VALUES (new_key, split_part(given, ' ', 2)) ON CONFLICT (k) DO UPDATE SET l = "@schema@"."antipode_merge"(given, s.l);
    END IF;
    RETURN NULL;
  END IF;
  DELETE FROM "@schema@"."@table@_ap" AS s WHERE s.k = old_key RETURNING s.l INTO older;
  INSERT INTO "@schema@"."antipode_tombstone" AS d (t, k, l, h) SELECT '@table@', g.k, g.l, until_hour FROM (SELECT old_key AS k, "@schema@"."antipode_merge"(given, older) AS l) AS g WHERE g.l IS NOT NULL ON CONFLICT (t, k) DO UPDATE SET l = CASE WHEN d.h < this_hour THEN excluded.l ELSE "@schema@"."antipode_merge"(given, concat_ws(',', excluded.l, d.l)) END, h = greatest(d.h, excluded.h);
  IF TG_OP = 'UPDATE' AND (given IS NOT NULL OR older IS NOT NULL) THEN
    INSERT INTO "@schema@"."@table@_ap" AS s (k, l) VALUES (new_key, "@schema@"."antipode_merge"(given, older))
      ON CONFLICT (k) DO UPDATE SET l = "@schema@"."antipode_merge"(given, concat_ws(',', older, s.l));
  END IF;
  RETURN NULL;
END $antipode$;

REVOKE EXECUTE ON FUNCTION "@schema@"."@table@_ap"() FROM PUBLIC;

CREATE TRIGGER "0_@table@_ap" AFTER INSERT OR UPDATE OR DELETE ON "@schema@"."@table@" FOR EACH ROW EXECUTE FUNCTION "@schema@"."@table@_ap"();

CREATE TRIGGER "0_@table@_ap_truncate" AFTER TRUNCATE ON "@schema@"."@table@" FOR EACH STATEMENT EXECUTE FUNCTION "@schema@"."@table@_ap"();
