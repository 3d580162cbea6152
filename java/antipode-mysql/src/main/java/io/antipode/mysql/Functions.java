package io.antipode.mysql;

import io.antipode.jdbc.Texts;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Which functions a statement calls that are not built into the server: they may write.
 *
 * <p>The table is the specification's (docs/spec/sql-functions.md), of MySQL 9 and MariaDB 10.11.
 */
final class Functions {
  /** Words, not functions, that stand before a parenthesis. */
  private static final Set<String> WORDS =
      names(
          """
          against all and any as between binary by case columns decimal distinct distinctrow div
          else escape except exists from having in index intersect into is join key lateral like
          limit lines not of on or over partition regexp returning rlike row select set some
          sql_calc_found_rows straight_join table then union using value varbinary varchar when
          where xor
          """);

  /** Built into MySQL and MariaDB. */
  private static final Set<String> BOTH =
      names(
          """
          abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg benchmark bin
          bit_and bit_count bit_length bit_or bit_xor cast ceil ceiling char character
          character_length charset char_length coalesce coercibility collation compress concat
          concat_ws connection_id conv convert convert_tz cos cot count crc32 cume_dist curdate
          current_date current_role current_time current_timestamp current_user curtime database
          date datediff date_add date_format date_sub day dayname dayofmonth dayofweek dayofyear
          default degrees dense_rank elt exp export_set extract extractvalue field find_in_set
          first_value floor format found_rows from_base64 from_days from_unixtime get_format
          get_lock greatest group_concat hex high_priority hour if ifnull inet6_aton inet6_ntoa
          inet_aton inet_ntoa insert instr interval isnull is_free_lock is_ipv4 is_ipv4_compat
          is_ipv4_mapped is_ipv6 is_used_lock json_array json_arrayagg json_array_append
          json_array_insert json_contains json_contains_path json_depth json_extract json_insert
          json_keys json_length json_merge json_merge_patch json_merge_preserve json_object
          json_objectagg json_overlaps json_pretty json_quote json_remove json_replace json_search
          json_set json_table json_type json_unquote json_valid json_value lag last_day
          last_insert_id last_value lcase lead least left length ln load_file localtime
          localtimestamp locate log log10 log2 lower lpad ltrim makedate maketime make_set
          master_pos_wait match max mbrcontains mbrdisjoint mbrequals mbrintersects mbroverlaps
          mbrtouches mbrwithin md5 microsecond mid min minute mod month monthname name_const now
          nth_value ntile nullif oct octet_length ord percent_rank period_add period_diff pi
          position pow power quarter quote radians rand random_bytes rank regexp_instr
          regexp_replace regexp_substr release_all_locks release_lock repeat replace reverse right
          round row_count row_number rpad rtrim schema second sec_to_time session_user sha sha1
          sha2 sign sin sleep soundex space sql_big_result sql_buffer_result sql_no_cache
          sql_small_result sqrt std stddev stddev_pop stddev_samp strcmp str_to_date st_area
          st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_buffer st_centroid st_contains
          st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance
          st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring st_geomcollfromtext
          st_geomcollfromwkb st_geometrycollectionfromtext st_geometrycollectionfromwkb
          st_geometryfromtext st_geometryfromwkb st_geometryn st_geometrytype st_geomfromgeojson
          st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects
          st_isclosed st_isempty st_issimple st_length st_linefromtext st_linefromwkb
          st_linestringfromtext st_linestringfromwkb st_mlinefromtext st_mlinefromwkb
          st_mpointfromtext st_mpointfromwkb st_mpolyfromtext st_mpolyfromwkb
          st_multilinestringfromtext st_multilinestringfromwkb st_multipointfromtext
          st_multipointfromwkb st_multipolygonfromtext st_multipolygonfromwkb st_numgeometries
          st_numinteriorrings st_numpoints st_overlaps st_pointfromtext st_pointfromwkb st_pointn
          st_polyfromtext st_polyfromwkb st_polygonfromtext st_polygonfromwkb st_srid
          st_startpoint st_symdifference st_touches st_union st_within st_x st_y subdate substr
          substring substring_index subtime sum sysdate system_user tan time timediff timestamp
          timestampadd timestampdiff time_format time_to_sec to_base64 to_days to_seconds trim
          truncate ucase uncompress uncompressed_length unhex unix_timestamp updatexml upper user
          utc_date utc_time utc_timestamp uuid uuid_short values variance var_pop var_samp version
          week weekday weekofyear weight_string year yearweek
          """);

  /** Built into one of them. */
  private static final Map<Flavor, Set<String>> OWN =
      Map.of(
          Flavor.MYSQL,
          names(
              """
              any_value bin_to_uuid etag format_bytes format_pico_time from_vector geomcollection
              geometrycollection grouping gtid_subset gtid_subtract icu_version is_uuid
              json_duality_object json_schema_valid json_schema_validation_report json_storage_free
              json_storage_size linestring mbrcoveredby mbrcovers multilinestring multipoint
              multipolygon polygon ps_current_thread_id ps_thread_id regexp_like source_pos_wait
              statement_digest statement_digest_text string_to_vector st_buffer_strategy st_collect
              st_frechetdistance st_geohash st_geomcollfromtxt st_hausdorffdistance st_isvalid
              st_latfromgeohash st_latitude st_lineinterpolatepoint st_lineinterpolatepoints
              st_longfromgeohash st_longitude st_makeenvelope st_numinteriorring st_pointatdistance
              st_pointfromgeohash st_simplify st_swapxy st_transform st_validate to_vector uuid_to_bin
              validate_password_strength vector_dim vector_to_string wait_for_executed_gtid_set
              """),
          Flavor.MARIADB,
          names(
              """
              add_months binlog_gtid_pos buffer chr column_add column_check column_create
              column_delete column_exists column_get column_json column_list concat_operator_oracle
              contains crc32c decode decode_histogram decode_oracle des_decrypt des_encrypt encode
              encrypt glength json_compact json_detailed json_equals json_exists json_loose
              json_normalize json_query lastval lengthb lpad_oracle ltrim_oracle master_gtid_wait
              mbrequal median natural_sort_key nvl nvl2 old_password overlaps password percentile_cont
              percentile_disc replace_oracle rownum rpad_oracle rtrim_oracle sformat srid st_boundary
              st_isring st_pointonsurface st_relate substr_oracle sys_guid to_char trim_oracle within
              wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid
              """));

  /** MariaDB's functions of sequences: they write, even where the transaction is rolled back. */
  private static final Set<String> SEQUENCES = Set.of("nextval", "setval");

  private static final String NEXTVAL = "nextval";

  // Possessive, so that no text takes more than linear time.
  private static final String NAMED = "\\w$.\u0080-\uffff";

  /** What stands before a parenthesis; quoted, or of a schema, it is no word and not built in. */
  private static final Pattern CALLED =
      Pattern.compile("(?<![" + NAMED + "`\"])([" + NAMED + "`\"]++)\\s*+\\(");

  private static final Pattern PARENTHESIS = Pattern.compile("\\s*+\\(");

  private static final Pattern INTO =
      Pattern.compile(
          "\\s*+(?:insert|replace)\\s(?:[a-z_\\s]*\\s)?into\\s++[\\w$.`]++\\s*+\\(",
          Pattern.CASE_INSENSITIVE);

  private static final Pattern NEXT =
      Pattern.compile(
          "\\bnext\\s++value\\s++for\\b|\\.\\s*+`?nextval\\b", Pattern.CASE_INSENSITIVE);

  /** Marks a name that was quoted. */
  private static final char QUOTE = '\u0001';

  private static final Pattern NAME = Pattern.compile("[" + NAMED + QUOTE + "]++");
  private static final Pattern TOKEN = Pattern.compile("[" + NAMED + QUOTE + "]++|[^\\s\\w]");
  private static final Pattern NO_NAME = Pattern.compile("[^\\w$]");

  /** A quoted name; strings; comments, but for those that a server reads. */
  private static final Pattern QUOTED =
      Pattern.compile(
          "`[^`]*+(?:`|\\z)|'(?:[^'\\\\]++|\\\\(?:.|\\z))*+(?:'|\\z)"
              + "|\"(?:[^\"\\\\]++|\\\\(?:.|\\z))*+(?:\"|\\z)"
              + "|/\\*(?!M?!).*?(?:\\*/|\\z)|/\\*M?!\\d*+|(?:#|--(?=\\s))[^\\n]*+",
          Pattern.DOTALL);

  /** After these a name is a table's, an alias or a type. */
  private static final Set<String> NO_CALL =
      Set.of(
          ")",
          "'",
          "into",
          "table",
          "exists",
          "as",
          "with",
          "recursive",
          "insert",
          "replace",
          "delayed");

  private Functions() {}

  private static Set<String> names(String table) {
    return Set.of(table.strip().split("\\s+"));
  }

  /** Returns whether a function takes numbers of a sequence. */
  static boolean isOfSequence(String name) {
    return SEQUENCES.contains(name);
  }

  /** Returns the functions that a statement calls and that are not built into its server. */
  static Set<String> called(String sql, Flavor flavor) {
    Set<String> found = called(sql);
    found.removeAll(Objects.requireNonNull(OWN.get(flavor)));
    return found;
  }

  /**
   * Returns the functions that a statement calls and that are not built into both families.
   *
   * @return their names as the statement has them, without quotes, in small letters and in order;
   *     {@code nextval} for what takes a number of a sequence; none where the text is too long
   */
  static Set<String> called(String sql) {
    Set<String> found = new TreeSet<>();
    if (Texts.isTooLong(sql)) {
      return found;
    }
    if (sql.indexOf('(') >= 0 && (isCommented(sql) || mayCall(sql))) {
      find(sql, found);
    }
    boolean mayTake = sql.indexOf('x') >= 0 || sql.indexOf('X') >= 0;
    if (mayTake && NEXT.matcher(sql).find()) {
      found.add(NEXTVAL);
    }
    return found;
  }

  /** Returns whether a comment may stand between a name and its parenthesis. */
  private static boolean isCommented(String sql) {
    return sql.contains("/*") || sql.contains("--") || sql.indexOf('#') >= 0;
  }

  /** Returns whether any name before a parenthesis, in strings too, is not built in. */
  private static boolean mayCall(String sql) {
    Matcher head = INTO.matcher(sql);
    Matcher name = CALLED.matcher(sql);
    name.region(head.lookingAt() ? head.end() : 0, sql.length());
    while (name.find()) {
      if (!isKnown(name.group(1).toLowerCase(Locale.ROOT))) {
        return true;
      }
    }
    return false;
  }

  private static boolean isKnown(String name) {
    return BOTH.contains(name) || WORDS.contains(name);
  }

  private static void find(String sql, Set<String> found) {
    List<String> tokens = tokens(sql);
    Map<Integer, Integer> ends = ends(tokens);
    for (int at = 1; at < tokens.size(); at++) {
      String name = tokens.get(at - 1);
      if (!tokens.get(at).equals("(") || !NAME.matcher(name).matches() || isKnown(name)) {
        continue;
      }
      String before = at > 1 ? tokens.get(at - 2) : "";
      if (!NO_CALL.contains(before) && !isDefinition(tokens, ends.get(at))) {
        found.add(name.replace(String.valueOf(QUOTE), ""));
      }
    }
  }

  /** Returns the tokens of a statement, in small letters, without what nobody reads. */
  private static List<String> tokens(String sql) {
    String shown = QUOTED.matcher(sql).replaceAll(match -> shown(match, sql));
    List<String> tokens = new ArrayList<>();
    Matcher token = TOKEN.matcher(shown);
    while (token.find()) {
      tokens.add(token.group().toLowerCase(Locale.ROOT));
    }
    return tokens;
  }

  /** Returns a name without its quotes, marked; a string as one token, a comment as nothing. */
  private static String shown(MatchResult match, String sql) {
    String text = match.group();
    char first = text.charAt(0);
    if (first == '`' || (first == '"' && isBeforeParenthesis(sql, match.end()))) {
      int end = Math.max(1, text.length() - 1); // In ANSI_QUOTES names have double quotes.
      String name = NO_NAME.matcher(text.substring(1, end)).replaceAll("_");
      return Matcher.quoteReplacement(QUOTE + name);
    }
    return first == '\'' || first == '"' ? "'" : " ";
  }

  private static boolean isBeforeParenthesis(String sql, int at) {
    return PARENTHESIS.matcher(sql).region(at, sql.length()).lookingAt();
  }

  /** Returns where the parentheses that open end; those that never end are left out. */
  private static Map<Integer, Integer> ends(List<String> tokens) {
    Map<Integer, Integer> ends = new HashMap<>();
    Deque<Integer> open = new ArrayDeque<>();
    for (int at = 0; at < tokens.size(); at++) {
      if (tokens.get(at).equals("(")) {
        open.push(at);
      } else if (tokens.get(at).equals(")") && !open.isEmpty()) {
        ends.put(open.pop(), at);
      }
    }
    return ends;
  }

  /** Returns whether a parenthesis that ends there has the columns of a common table expression. */
  private static boolean isDefinition(List<String> tokens, @Nullable Integer end) {
    return end != null
        && end + 2 < tokens.size()
        && tokens.get(end + 1).equals("as")
        && tokens.get(end + 2).equals("(");
  }
}
