"""Which functions a statement calls that are not built into the server: they may write.

Pure. The table is the specification's (docs/spec/sql-functions.md), of MySQL 9 and MariaDB 10.11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from antipode_shims._sql.functions import declared
from antipode_shims._sql.texts import LONGEST_KEPT, Kept

from ._position.flavor import Flavor

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def _names(table: str) -> frozenset[bytes]:
    return frozenset(table.encode().split())


#: Words, not functions, that stand before a parenthesis.
WORDS: Final = _names(
    """
    against all and any as between binary by case columns decimal distinct distinctrow div else
    escape except exists from having in index intersect into is join key lateral like limit
    lines not of on or over partition regexp returning rlike row select set some
    sql_calc_found_rows straight_join table then union using value varbinary varchar when where
    xor
    """
)
#: Built into MySQL and MariaDB.
BOTH: Final = _names(
    """
    abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg benchmark bin
    bit_and bit_count bit_length bit_or bit_xor cast ceil ceiling char character
    character_length charset char_length coalesce coercibility collation compress concat
    concat_ws connection_id conv convert convert_tz cos cot count crc32 cume_dist curdate
    current_date current_role current_time current_timestamp current_user curtime database date
    datediff date_add date_format date_sub day dayname dayofmonth dayofweek dayofyear default
    degrees dense_rank elt exp export_set extract extractvalue field find_in_set first_value
    floor format found_rows from_base64 from_days from_unixtime get_format get_lock greatest
    group_concat hex high_priority hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa
    insert instr interval isnull is_free_lock is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6
    is_used_lock json_array json_arrayagg json_array_append json_array_insert json_contains
    json_contains_path json_depth json_extract json_insert json_keys json_length json_merge
    json_merge_patch json_merge_preserve json_object json_objectagg json_overlaps json_pretty
    json_quote json_remove json_replace json_search json_set json_table json_type json_unquote
    json_valid json_value lag last_day last_insert_id last_value lcase lead least left length ln
    load_file localtime localtimestamp locate log log10 log2 lower lpad ltrim makedate maketime
    make_set master_pos_wait match max mbrcontains mbrdisjoint mbrequals mbrintersects
    mbroverlaps mbrtouches mbrwithin md5 microsecond mid min minute mod month monthname
    name_const now nth_value ntile nullif oct octet_length ord percent_rank period_add
    period_diff pi position pow power quarter quote radians rand random_bytes rank regexp_instr
    regexp_replace regexp_substr release_all_locks release_lock repeat replace reverse right
    round row_count row_number rpad rtrim schema second sec_to_time session_user sha sha1 sha2
    sign sin sleep soundex space sql_big_result sql_buffer_result sql_no_cache sql_small_result
    sqrt std stddev stddev_pop stddev_samp strcmp str_to_date st_area st_asbinary st_asgeojson
    st_astext st_aswkb st_aswkt st_buffer st_centroid st_contains st_convexhull st_crosses
    st_difference st_dimension st_disjoint st_distance st_distance_sphere st_endpoint
    st_envelope st_equals st_exteriorring st_geomcollfromtext st_geomcollfromwkb
    st_geometrycollectionfromtext st_geometrycollectionfromwkb st_geometryfromtext
    st_geometryfromwkb st_geometryn st_geometrytype st_geomfromgeojson st_geomfromtext
    st_geomfromwkb st_interiorringn st_intersection st_intersects st_isclosed st_isempty
    st_issimple st_length st_linefromtext st_linefromwkb st_linestringfromtext
    st_linestringfromwkb st_mlinefromtext st_mlinefromwkb st_mpointfromtext st_mpointfromwkb
    st_mpolyfromtext st_mpolyfromwkb st_multilinestringfromtext st_multilinestringfromwkb
    st_multipointfromtext st_multipointfromwkb st_multipolygonfromtext st_multipolygonfromwkb
    st_numgeometries st_numinteriorrings st_numpoints st_overlaps st_pointfromtext
    st_pointfromwkb st_pointn st_polyfromtext st_polyfromwkb st_polygonfromtext
    st_polygonfromwkb st_srid st_startpoint st_symdifference st_touches st_union st_within st_x
    st_y subdate substr substring substring_index subtime sum sysdate system_user tan time
    timediff timestamp timestampadd timestampdiff time_format time_to_sec to_base64 to_days
    to_seconds trim truncate ucase uncompress uncompressed_length unhex unix_timestamp updatexml
    upper user utc_date utc_time utc_timestamp uuid uuid_short values variance var_pop var_samp
    version week weekday weekofyear weight_string year yearweek
    """
)
#: Built into one of them.
OWN: Final = {
    Flavor.MYSQL: _names(
        """
    any_value bin_to_uuid etag format_bytes format_pico_time from_vector geomcollection
    geometrycollection grouping gtid_subset gtid_subtract icu_version is_uuid
    json_duality_object json_schema_valid json_schema_validation_report json_storage_free
    json_storage_size linestring mbrcoveredby mbrcovers multilinestring multipoint multipolygon
    polygon ps_current_thread_id ps_thread_id regexp_like source_pos_wait statement_digest
    statement_digest_text string_to_vector st_buffer_strategy st_collect st_frechetdistance
    st_geohash st_geomcollfromtxt st_hausdorffdistance st_isvalid st_latfromgeohash st_latitude
    st_lineinterpolatepoint st_lineinterpolatepoints st_longfromgeohash st_longitude
    st_makeenvelope st_numinteriorring st_pointatdistance st_pointfromgeohash st_simplify
    st_swapxy st_transform st_validate to_vector uuid_to_bin validate_password_strength
    vector_dim vector_to_string wait_for_executed_gtid_set
    """
    ),
    Flavor.MARIADB: _names(
        """
    add_months binlog_gtid_pos buffer chr column_add column_check column_create column_delete
    column_exists column_get column_json column_list concat_operator_oracle contains crc32c
    decode decode_histogram decode_oracle des_decrypt des_encrypt encode encrypt glength
    json_compact json_detailed json_equals json_exists json_loose json_normalize json_query
    lastval lengthb lpad_oracle ltrim_oracle master_gtid_wait mbrequal median natural_sort_key
    nvl nvl2 old_password overlaps password percentile_cont percentile_disc replace_oracle
    rownum rpad_oracle rtrim_oracle sformat srid st_boundary st_isring st_pointonsurface
    st_relate substr_oracle sys_guid to_char trim_oracle within wsrep_last_seen_gtid
    wsrep_last_written_gtid wsrep_sync_wait_upto_gtid
    """
    ),
}
#: MariaDB's functions of sequences: they write, even where the transaction is rolled back.
SEQUENCES: Final = frozenset({b"nextval", b"setval"})
_KNOWN: Final = WORDS | BOTH
#: Of what may be a name before a parenthesis all stays; quoted, or of a schema, it is not built in.
_NAMES_ALONE: Final = re.sub(rb"[^\w$.`\"\x80-\xff]", b" ", bytes(range(256)))
#: Longer than names of functions, and the space behind them, are.
_LONGEST: Final = 160
_PARENTHESIS: Final = re.compile(rb"\s*\(")
_INTO: Final = re.compile(
    rb"\s*(?:insert|replace)\s(?:[a-z_\s]*\s)?into\s+[\w$.`]+\s*\(", re.IGNORECASE
)
_NEXT: Final = re.compile(rb"\bnext\s+value\s+for\b|\.\s*`?nextval\b", re.IGNORECASE)
_NAME: Final = re.compile(rb"[\w$.\x01\x80-\xff]+")
_TOKEN: Final = re.compile(rb"[\w$.\x01\x80-\xff]+|[^\s\w]")
#: A quoted name; strings; comments, but for those that a server reads.
_QUOTED: Final = re.compile(
    rb"""`[^`]*(?:`|\Z)|'(?:[^'\\]+|\\(?:.|\Z))*(?:'|\Z)|"(?:[^"\\]+|\\(?:.|\Z))*(?:"|\Z)"""
    rb"""|/\*(?!M?!).*?(?:\*/|\Z)|/\*M?!\d*|(?:\#|--(?=\s))[^\n]*""",
    re.DOTALL,
)
#: After these a name is a table's, an alias or a type.
_NO_CALL: Final = frozenset(
    b") ' into table exists as with recursive insert replace delayed".split()
)
_NUMBER: Final = re.compile(rb"(?<![\w$.\x01\x80-\xff])\d[\d.]*")
#: What texts without values call.
_kept: Kept[bytes, frozenset[bytes]] = Kept()


def names_of(functions: Collection[str]) -> frozenset[bytes]:
    """The names that ``readonly_functions`` gives, as :func:`called` has them.

    Raises:
        ConfigurationError: it is one text, or has what is no ``name`` or ``schema.name``.
    """
    return frozenset(each.encode() for each in declared(functions))


def called(sql: bytes) -> frozenset[bytes]:
    """The functions that *sql* calls and that are not built into both families.

    Returns:
        Their names as the statement has them, without quotes, in small letters; ``nextval`` for
        what takes a number of a sequence.
    """
    found: frozenset[bytes] = frozenset()
    if b"(" in sql:
        head = _INTO.match(sql)
        names = _before_parentheses(sql, 0 if head is None else head.end())
        if not _KNOWN.issuperset(names) or _commented(sql):
            found = _in(_NUMBER.sub(b"0", _QUOTED.sub(_shown, sql)))
    if (b"ext" in sql or b"EXT" in sql) and _NEXT.search(sql):
        found |= {b"nextval"}
    return found


def _before_parentheses(sql: bytes, start: int) -> Iterator[bytes]:
    """What stands before each parenthesis, in small letters: a name, or more where that is long.

    Backwards from each parenthesis: a search for names goes through all that is in quotes, and
    takes 0.1 ms for each 1,000 bytes of a value.
    """
    at = sql.find(b"(", start)
    while at >= 0:
        first = max(at - _LONGEST, start)
        before = sql[first:at].rstrip()
        spaced = before.translate(_NAMES_ALONE)
        if spaced[-1:] != b" " and (before or first > start):
            name = spaced[spaced.rfind(b" ") + 1 :].lower()
            yield name if len(name) < len(spaced) or first == start else sql[first:at]
        at = sql.find(b"(", at + 1)


def _commented(sql: bytes) -> bool:
    """Whether a comment may stand between a name and its parenthesis."""
    return b"/*" in sql or b"--" in sql or b"#" in sql


def _in(plain: bytes) -> frozenset[bytes]:
    """The same, of a text without values."""
    found = _kept.get(plain)
    if found is None:
        found = _searched(plain)
        if len(plain) <= LONGEST_KEPT:
            _kept.keep(plain, found)
    return found


def _searched(plain: bytes) -> frozenset[bytes]:
    tokens = _TOKEN.findall(plain)
    ends = _ends(tokens)
    found = set()
    for at in range(1, len(tokens)):
        name = tokens[at - 1].lower()
        if tokens[at] != b"(" or _NAME.fullmatch(name) is None:
            continue
        before = tokens[at - 2].lower() if at > 1 else b""
        if name not in _KNOWN and before not in _NO_CALL and not _defines(tokens, ends.get(at)):
            found.add(name.replace(b"\x01", b""))
    return frozenset(found)


def _ends(tokens: list[bytes]) -> dict[int, int]:
    """Where the parentheses that open end; those that never end are left out."""
    ends: dict[int, int] = {}
    still_open: list[int] = []
    for at, token in enumerate(tokens):
        if token == b"(":
            still_open.append(at)
        elif token == b")" and still_open:
            ends[still_open.pop()] = at
    return ends


def _defines(tokens: list[bytes], end: int | None) -> bool:
    """Whether the parenthesis that ends at *end* has the columns of a common table expression."""
    if end is None:
        return False
    return [token.lower() for token in tokens[end + 1 : end + 3]] == [b"as", b"("]


def _shown(match: re.Match[bytes]) -> bytes:
    """A name without its quotes, marked; a string or a comment as one token, or nothing."""
    text = match.group()
    if text[:1] == b"`":
        return b"\x01" + re.sub(rb"[^\w$]", b"_", text[1:-1])
    if text[:1] == b'"' and _PARENTHESIS.match(match.string, match.end()):
        return b"\x01" + re.sub(rb"[^\w$]", b"_", text[1:-1])  # Quoted so by ANSI_QUOTES.
    return b"'" if text[:1] in b"'\"" else b" "
