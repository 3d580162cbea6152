"""The SQL that stores lineages with rows: names, side tables, what triggers do. Pure text.

PostgreSQL has no invisible columns. So a *side table* has a row for each row that has a lineage, by
its key; triggers write it in the transaction of the row. They are their owner's (`SECURITY
DEFINER`): a service only reads what they store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import Lineage
from antipode.shim import encode
from antipode_shims._sql.superseded import CARRIED
from antipode_shims._sql.table2 import SEPARATOR

from .table import SUFFIX, identifier, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .table import Table

#: The setting by which a session says what its writes depend on: until which Unix hour a tombstone
#: is kept, the lineage, and the pattern of what it supersedes, with spaces between them.
SETTING = "antipode.lineage"
TOMBSTONES = "antipode_tombstone"
MERGE = "antipode_merge"
COMMENT = "antipode 1"
#: How many bytes several texts may have together; above it the older ones go, and a mark says so.
MOST_BYTES = 1024
#: How many bytes of a key are stored; of a longer one it is a digest.
KEY_BYTES = 512
#: How many hours a deletion is remembered that a plain client made; as Table 2's by default.
PLAIN_HOURS = 7 * 24 + 1

#: It names no datastore: what went may have been about any, and no fence stands for it.
_MARK = encode(Lineage(incomplete=[("", "size")]))
_BODY = "$antipode$"


def key_of(values: Sequence[str]) -> str:
    """What identifies a row: its key's one value, or several, each after its length; as bytes.

    A key that is too long for an index is hashed: no write may fail for the sake of its lineage.

    Args:
        values: SQL for each value, of type text.
    """
    text = values[0]
    if len(values) > 1:
        text = " || ':' || ".join(f"octet_length({each}) || ':' || {each}" for each in values)
    key = f"convert_to({text}, getdatabaseencoding())"
    return (
        f"CASE WHEN octet_length({key}) > {KEY_BYTES}"
        f" THEN convert_to(encode(sha512({key}), 'hex'), getdatabaseencoding()) ELSE {key} END"
    )


def merging(schema: str) -> str:
    """The function that merges what a session says with what lies beside a row; for all tables.

    The new text comes first. From the others goes what it supersedes, and then the texts of which
    nothing is left; but not where one is of another version of the format, or carries a text of
    one. A pattern that the server finds too complex supersedes nothing.
    """
    comma = literal(SEPARATOR)
    both = f"said || {comma} || "
    empty = f"'{SEPARATOR}1[0-9a-z]*(?={SEPARATOR}|$)'"
    name = f"{identifier(schema)}.{identifier(MERGE)}"
    return f"""CREATE OR REPLACE FUNCTION {name}(given text, older text) RETURNS text
 LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS {_BODY}
DECLARE
  said text := split_part(given, ' ', 2);
  pattern text := split_part(given, ' ', 3);
  merged text := older;
  others text;
BEGIN
  IF given IS NOT NULL THEN
    others := array_to_string(array_remove(string_to_array(older, {comma}), said), {comma});
    IF others IS NULL OR others = '' THEN
      RETURN said;
    END IF;
    merged := {both}others;
    IF pattern <> '' AND others !~ '(^|{SEPARATOR})[^1]|{CARRIED}' THEN
      BEGIN
        merged := regexp_replace({both}regexp_replace(others, pattern, '', 'g'), {empty}, '', 'g');
      EXCEPTION WHEN invalid_regular_expression THEN
        NULL;
      END;
    END IF;
  END IF;
  IF octet_length(merged) > {MOST_BYTES} AND strpos(merged, {comma}) > 0 THEN
    RETURN concat_ws({comma}, said, '{_MARK}');
  END IF;
  RETURN merged;
END {_BODY}"""


def storing(table: Table) -> str:
    """The function of a table's triggers.

    They run after the change of the row itself, whatever made it. Under another key a row keeps its
    lineage, merged with what may lie there; the old one is as deleted.
    """
    side, merge = table.side_name, table.beside(MERGE)
    new, old = (_row_key(row, table.columns) for row in ("NEW", "OLD"))
    one = _burying(table, f"(SELECT old_key AS k, {merge}(given, older) AS l)")
    every = _burying(table, f"(SELECT s.k, {merge}(given, s.l) AS l FROM {side} AS s)")
    form = literal(f"^[0-9]{{1,9}} [^ {SEPARATOR}]+ .*$")
    return f"""CREATE OR REPLACE FUNCTION {side}() RETURNS trigger LANGUAGE plpgsql
 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {_BODY}
DECLARE
  given text := substring(current_setting('{SETTING}', true) FROM {form});
  this_hour bigint := floor(extract(epoch FROM now()) / 3600);
  until_hour bigint := coalesce(split_part(given, ' ', 1)::bigint, this_hour + {PLAIN_HOURS});
  new_key bytea;
  old_key bytea;
  older text;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    {every};
    DELETE FROM {side};
    RETURN NULL;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    new_key := {new};
  END IF;
  IF TG_OP <> 'INSERT' THEN
    old_key := {old};
  END IF;
{_keeping(side, merge)}
  DELETE FROM {side} AS s WHERE s.k = old_key RETURNING s.l INTO older;
  {one};
  IF TG_OP = 'UPDATE' AND (given IS NOT NULL OR older IS NOT NULL) THEN
    INSERT INTO {side} AS s (k, l) VALUES (new_key, {merge}(given, older))
      ON CONFLICT (k) DO UPDATE SET l = {merge}(given, concat_ws('{SEPARATOR}', older, s.l));
  END IF;
  RETURN NULL;
END {_BODY}"""


def _keeping(side: str, merge: str) -> str:
    """What an insert does, and an update that leaves the key."""
    put = f"INSERT INTO {side} AS s (k, l) VALUES (new_key, split_part(given, ' ', 2))"
    return f"""  IF TG_OP = 'INSERT' THEN
    IF given IS NULL THEN
      DELETE FROM {side} WHERE k = new_key;
    ELSE
      {put} ON CONFLICT (k) DO UPDATE SET l = excluded.l;
    END IF;
    RETURN NULL;
  ELSIF TG_OP = 'UPDATE' AND new_key = old_key THEN
    IF given IS NOT NULL THEN
      {put} ON CONFLICT (k) DO UPDATE SET l = {merge}(given, s.l);
    END IF;
    RETURN NULL;
  END IF;"""


def _burying(table: Table, gone: str) -> str:
    """What leaves tombstones of *gone*, keys and lineages; of none that had no lineage."""
    merge = table.beside(MERGE)
    return (
        f"INSERT INTO {table.beside(TOMBSTONES)} AS d (t, k, l, h)"
        f" SELECT {literal(table.name)}, g.k, g.l, until_hour FROM {gone} AS g"
        " WHERE g.l IS NOT NULL ON CONFLICT (t, k) DO UPDATE SET"
        " l = CASE WHEN d.h < this_hour THEN excluded.l"
        f" ELSE {merge}(given, concat_ws('{SEPARATOR}', excluded.l, d.l)) END,"
        " h = greatest(d.h, excluded.h)"
    )


def triggers(table: Table) -> tuple[str, ...]:
    """The triggers of a table: of its rows, and of `TRUNCATE`."""
    rows, emptied = trigger_names(table)
    runs = f"EXECUTE FUNCTION {table.side_name}()"
    return (
        (
            f"CREATE TRIGGER {identifier(rows)} AFTER INSERT OR UPDATE OR DELETE"
            f" ON {table.full_name} FOR EACH ROW {runs}"
        ),
        (
            f"CREATE TRIGGER {identifier(emptied)} AFTER TRUNCATE ON {table.full_name}"
            f" FOR EACH STATEMENT {runs}"
        ),
    )


def trigger_names(table: Table) -> tuple[str, str]:
    """What they are called: so that they run before the application's own, which go by name too."""
    name = f"0_{table.name[:48]}{SUFFIX}"
    return name, f"{name}_truncate"


def _row_key(row: str, columns: Sequence[str]) -> str:
    return key_of([f"{row}.{identifier(column)}::text" for column in columns])
