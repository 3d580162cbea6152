package io.antipode.postgresql;

import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Functions that a statement calls, and names of PostgreSQL's own that write nothing: all others
 * may, for all that its text tells. The catalogue has the last word on each.
 */
final class Functions {
  private static final Set<String> READONLY =
      words(
          """
          abs acos age array_agg array_append array_cat array_length array_lower array_ndims
          array_position array_positions array_prepend array_remove array_replace array_to_json
          array_to_string array_upper ascii asin atan atan2 avg bit_and bit_length bit_or
          bool_and bool_or btrim cardinality cbrt ceil ceiling char_length character_length chr
          clock_timestamp coalesce concat concat_ws convert convert_from convert_to corr cos
          cosh cot count covar_pop covar_samp cume_dist current_catalog current_database
          current_date current_query current_role current_schema current_schemas current_setting
          current_time current_timestamp current_user date_bin date_part date_trunc decode
          degrees dense_rank div encode every exp factorial first_value floor format format_type
          gen_random_uuid generate_series generate_subscripts greatest has_any_column_privilege
          has_column_privilege has_database_privilege has_function_privilege
          has_schema_privilege has_sequence_privilege has_table_privilege hashtext
          inet_client_addr inet_server_addr inet_server_port initcap isfinite json_agg
          json_array_elements json_array_elements_text json_array_length json_build_array
          json_build_object json_each json_each_text json_extract_path json_extract_path_text
          json_object json_object_agg json_object_keys json_populate_record
          json_populate_recordset json_strip_nulls json_to_record json_to_recordset json_typeof
          jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length
          jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_exists
          jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_agg
          jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query
          jsonb_path_query_array jsonb_path_query_first jsonb_populate_record
          jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_to_record
          jsonb_to_recordset jsonb_typeof justify_days justify_hours justify_interval lag
          last_value lead least left length ln localtime localtimestamp log log10 lower lpad
          ltrim make_date make_interval make_time make_timestamp make_timestamptz max md5 min
          mod mode now nth_value ntile nullif numnode obj_description octet_length overlay
          percent_rank percentile_cont percentile_disc pg_backend_pid pg_client_encoding
          pg_column_size pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn
          pg_current_xact_id_if_assigned pg_database_size pg_encoding_to_char
          pg_function_is_visible pg_get_constraintdef pg_get_expr pg_get_functiondef
          pg_get_indexdef pg_get_keywords pg_get_ruledef pg_get_serial_sequence pg_get_userbyid
          pg_get_viewdef pg_indexes_size pg_is_in_recovery pg_is_other_temp_schema
          pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_postmaster_start_time
          pg_relation_size pg_size_pretty pg_sleep pg_table_is_visible pg_table_size
          pg_total_relation_size pg_type_is_visible pg_typeof phraseto_tsquery pi
          plainto_tsquery position pow power quote_ident quote_literal quote_nullable radians
          random rank regexp_count regexp_instr regexp_like regexp_match regexp_matches
          regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr regr_slope
          repeat replace reverse right round row_number row_to_json rpad rtrim scale sha224
          sha256 sha384 sha512 sign sin sinh split_part sqrt starts_with statement_timestamp
          stddev stddev_pop stddev_samp string_agg string_to_array string_to_table strip strpos
          substr substring sum tan tanh timeofday to_ascii to_char to_date to_hex to_json
          to_jsonb to_number to_regclass to_regproc to_regprocedure to_regtype to_timestamp
          to_tsquery to_tsvector transaction_timestamp translate trim trim_array trunc
          ts_headline ts_rank ts_rank_cd unnest upper user uuid_send var_pop var_samp variance
          version websearch_to_tsquery width_bucket
          """);

  /** Words before a parenthesis that call nothing: of the grammar, and types. */
  private static final Set<String> GRAMMAR =
      words(
          """
          ALL AND ANY ARRAY AS ASYMMETRIC BETWEEN BIT BOOLEAN BY CASE CAST CHAR CHARACTER CHECK
          COLLATE CONFLICT COPY CROSS CUBE DATE DEC DECIMAL DEFAULT DISTINCT DOUBLE ELSE END
          EXCEPT EXISTS EXTRACT FILTER FLOAT FOR FROM FULL GROUP GROUPING HAVING ILIKE IN INNER
          INTERSECT INTERVAL INTO IS ISNULL JOIN KEY LATERAL LEFT LIKE LIMIT MATERIALIZED
          NATURAL NCHAR NOT NOTNULL NULL NUMERIC OF OFFSET ON ONLY OR ORDER OUTER OVER OVERLAY
          PARTITION POSITION PRECISION RANGE REAL RECURSIVE RETURNING RIGHT ROLLUP ROW ROWS
          SELECT SET SETS SIMILAR SOME SUBSTRING SYMMETRIC TABLE THEN TIME TIMESTAMP TIMESTAMPTZ
          TIMETZ TREAT TRIM UNION UNIQUE USING VALUES VARBIT VARCHAR VARYING WHEN WHERE WINDOW
          WITH WITHIN
          """);

  static final String IDENTIFIER = "[A-Za-z_\\x{80}-\\x{10ffff}][\\w$\\x{80}-\\x{10ffff}]*";

  /**
   * Of a text in dollars: a name without any, else each of its beginnings would be tried as one.
   */
  static final String TAG = "[A-Za-z_\\x{80}-\\x{10ffff}][\\w\\x{80}-\\x{10ffff}]*+";

  /**
   * Names with dots before a parenthesis, of no more parts than any server takes; not the columns
   * of an alias, nor how rows are drawn.
   */
  private static final Pattern CALL =
      Pattern.compile(
          "(\\b(?:AS|TABLESAMPLE)\\s+)?((?:\"\"|(?<![\\w$.\\x{80}-\\x{10ffff}])%s)(?:\\s*\\.\\s*(?:\"\"|%s)){0,8})\\s*\\("
              .replace("%s", IDENTIFIER),
          Pattern.CASE_INSENSITIVE);

  private static final Pattern SPACE = Pattern.compile("\\s");

  private Functions() {}

  private static Set<String> words(String text) {
    return Set.of(text.strip().split("\\s+"));
  }

  /**
   * Returns the functions that are called and may write, in small letters where they are plain.
   *
   * @param statement without what hides words
   * @param readonly further functions that write nothing, in small letters
   */
  static Set<String> called(String statement, Set<String> readonly) {
    Set<String> found = new TreeSet<>();
    Matcher call = CALL.matcher(statement);
    while (call.find()) {
      String name = SPACE.matcher(call.group(2)).replaceAll("");
      if (call.group(1) != null && !name.contains(".")) {
        continue;
      }
      name = name.toLowerCase(Locale.ROOT);
      if (name.startsWith("pg_catalog.")) {
        name = name.substring("pg_catalog.".length());
      }
      boolean isWord = GRAMMAR.contains(name.toUpperCase(Locale.ROOT));
      if (!isWord && !READONLY.contains(name) && !readonly.contains(name)) {
        found.add(name);
      }
    }
    return found;
  }
}
