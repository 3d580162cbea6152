#include "mysql/functions.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>
#include <vector>

#include "antipode/errors.h"
#include "antipode/text.h"
#include "mysql/statements.h"

namespace antipode::mysql {
namespace {

using Names = std::unordered_set<std::string_view>;

Names NamesIn(std::string_view table) {
  Names names;
  for (const std::string_view name : text::Split(table, ' ')) names.insert(name);
  return names;
}

/// Words, not functions, that stand before a parenthesis; and what is built into both families.
constexpr std::string_view kWords =
    "against all and any as between binary by case columns decimal distinct distinctrow div else escape except exists "
    "from having in index intersect into is join key lateral like limit lines not of on or over partition regexp "
    "returning rlike row select set some sql_calc_found_rows straight_join table then union using value varbinary "
    "varchar when where xor";
constexpr std::string_view kBoth =
    "abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg benchmark bin bit_and bit_count "
    "bit_length bit_or bit_xor cast ceil ceiling char character character_length charset char_length coalesce "
    "coercibility collation compress concat concat_ws connection_id conv convert convert_tz cos cot count crc32 "
    "cume_dist curdate current_date current_role current_time current_timestamp current_user curtime database date "
    "datediff date_add date_format date_sub day dayname dayofmonth dayofweek dayofyear default degrees dense_rank elt "
    "exp export_set extract extractvalue field find_in_set first_value floor format found_rows from_base64 from_days "
    "from_unixtime get_format get_lock greatest group_concat hex high_priority hour if ifnull inet6_aton inet6_ntoa "
    "inet_aton inet_ntoa insert instr interval isnull is_free_lock is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 "
    "is_used_lock json_array json_arrayagg json_array_append json_array_insert json_contains json_contains_path "
    "json_depth json_extract json_insert json_keys json_length json_merge json_merge_patch json_merge_preserve "
    "json_object json_objectagg json_overlaps json_pretty json_quote json_remove json_replace json_search json_set "
    "json_table json_type json_unquote json_valid json_value lag last_day last_insert_id last_value lcase lead least "
    "left length ln load_file localtime localtimestamp locate log log10 log2 lower lpad ltrim makedate maketime "
    "make_set master_pos_wait match max mbrcontains mbrdisjoint mbrequals mbrintersects mbroverlaps mbrtouches "
    "mbrwithin md5 microsecond mid min minute mod month monthname name_const now nth_value ntile nullif oct "
    "octet_length ord percent_rank period_add period_diff pi position pow power quarter quote radians rand "
    "random_bytes rank regexp_instr regexp_replace regexp_substr release_all_locks release_lock repeat replace "
    "reverse right round row_count row_number rpad rtrim schema second sec_to_time session_user sha sha1 sha2 sign "
    "sin sleep soundex space sql_big_result sql_buffer_result sql_no_cache sql_small_result sqrt std stddev "
    "stddev_pop stddev_samp strcmp str_to_date st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_buffer "
    "st_centroid st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance "
    "st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring st_geomcollfromtext st_geomcollfromwkb "
    "st_geometrycollectionfromtext st_geometrycollectionfromwkb st_geometryfromtext st_geometryfromwkb st_geometryn "
    "st_geometrytype st_geomfromgeojson st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects "
    "st_isclosed st_isempty st_issimple st_length st_linefromtext st_linefromwkb st_linestringfromtext "
    "st_linestringfromwkb st_mlinefromtext st_mlinefromwkb st_mpointfromtext st_mpointfromwkb st_mpolyfromtext "
    "st_mpolyfromwkb st_multilinestringfromtext st_multilinestringfromwkb st_multipointfromtext st_multipointfromwkb "
    "st_multipolygonfromtext st_multipolygonfromwkb st_numgeometries st_numinteriorrings st_numpoints st_overlaps "
    "st_pointfromtext st_pointfromwkb st_pointn st_polyfromtext st_polyfromwkb st_polygonfromtext st_polygonfromwkb "
    "st_srid st_startpoint st_symdifference st_touches st_union st_within st_x st_y subdate substr substring "
    "substring_index subtime sum sysdate system_user tan time timediff timestamp timestampadd timestampdiff "
    "time_format time_to_sec to_base64 to_days to_seconds trim truncate ucase uncompress uncompressed_length unhex "
    "unix_timestamp updatexml upper user utc_date utc_time utc_timestamp uuid uuid_short values variance var_pop "
    "var_samp version week weekday weekofyear weight_string year yearweek";
constexpr std::string_view kMySqlAlone =
    "any_value bin_to_uuid etag format_bytes format_pico_time from_vector geomcollection geometrycollection grouping "
    "gtid_subset gtid_subtract icu_version is_uuid json_duality_object json_schema_valid "
    "json_schema_validation_report json_storage_free json_storage_size linestring mbrcoveredby mbrcovers "
    "multilinestring multipoint multipolygon polygon ps_current_thread_id ps_thread_id regexp_like source_pos_wait "
    "statement_digest statement_digest_text string_to_vector st_buffer_strategy st_collect st_frechetdistance "
    "st_geohash st_geomcollfromtxt st_hausdorffdistance st_isvalid st_latfromgeohash st_latitude "
    "st_lineinterpolatepoint st_lineinterpolatepoints st_longfromgeohash st_longitude st_makeenvelope "
    "st_numinteriorring st_pointatdistance st_pointfromgeohash st_simplify st_swapxy st_transform st_validate "
    "to_vector uuid_to_bin validate_password_strength vector_dim vector_to_string wait_for_executed_gtid_set";
constexpr std::string_view kMariaDbAlone =
    "add_months binlog_gtid_pos buffer chr column_add column_check column_create column_delete column_exists "
    "column_get column_json column_list concat_operator_oracle contains crc32c decode decode_histogram decode_oracle "
    "des_decrypt des_encrypt encode encrypt glength json_compact json_detailed json_equals json_exists json_loose "
    "json_normalize json_query lastval lengthb lpad_oracle ltrim_oracle master_gtid_wait mbrequal median "
    "natural_sort_key nvl nvl2 old_password overlaps password percentile_cont percentile_disc replace_oracle rownum "
    "rpad_oracle rtrim_oracle sformat srid st_boundary st_isring st_pointonsurface st_relate substr_oracle sys_guid "
    "to_char trim_oracle within wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid";

bool IsKnown(std::string_view name) {
  static const auto& kKnown = *new Names([] {
    Names known = NamesIn(kBoth);
    known.merge(NamesIn(kWords));
    return known;
  }());
  return kKnown.count(name) != 0;
}

bool IsOwn(Flavor flavor, std::string_view name) {
  static const auto& kMySql = *new Names(NamesIn(kMySqlAlone));
  static const auto& kMariaDb = *new Names(NamesIn(kMariaDbAlone));
  return (flavor == Flavor::kMySql ? kMySql : kMariaDb).count(name) != 0;
}

/// After these a name is a table's, an alias or a type.
bool NamesNoCall(std::string_view before) {
  static constexpr std::array<std::string_view, 11> kBefore{")",    "'",         "into",   "table",   "exists", "as",
                                                            "with", "recursive", "insert", "replace", "delayed"};
  return std::find(kBefore.begin(), kBefore.end(), before) != kBefore.end();
}

/// Stands before a name, or a part of it, that was quoted.
constexpr char kQuoted = '\1';

char Small(char each) { return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each; }
bool IsSpace(char each) { return each == ' ' || (each >= '\t' && each <= '\r'); }
bool IsOfName(char each) {
  const char small = Small(each);
  return (small >= 'a' && small <= 'z') || (each >= '0' && each <= '9') || each == '_' || each == '$';
}
bool IsOfPath(char each) { return IsOfName(each) || each == '.' || static_cast<unsigned char>(each) >= 0x80; }

/// The words of a text one by one, names with their schemas, in small letters; a string is one, and all else that is no
/// white space and no comment.
class Words {
 public:
  explicit Words(std::string_view sql) : sql_(sql) {}

  /// The next one; false at the end.
  bool Next(std::string& word) {
    word.clear();
    while (at_ < sql_.size()) {
      const char first = sql_[at_];
      const std::size_t end = MayQuote(first) ? HiddenTo() : 0;
      const bool path = end != 0 ? IsQuotedName(first, end) : IsOfPath(first);
      if (!path && !word.empty()) return true;
      if (path && end != 0) {
        TakeQuoted(word, end);
      } else if (path) {
        word += Small(sql_[at_++]);
      } else if (end != 0) {
        at_ = end;
        if (first == '\'' || first == '"') return (word = "'", true);
      } else if (IsSpace(sql_[at_++])) {
        continue;
      } else {
        return (word = first, true);
      }
    }
    return !word.empty();
  }

 private:
  static bool MayQuote(char first) {
    return first == '`' || first == '\'' || first == '"' || first == '/' || first == '#' || first == '-';
  }

  /// Quoted so by ANSI_QUOTES, where it is called.
  [[nodiscard]] bool IsQuotedName(char first, std::size_t end) const {
    if (first != '"') return first == '`';
    while (end < sql_.size() && IsSpace(sql_[end])) ++end;
    return end < sql_.size() && sql_[end] == '(';
  }

  void TakeQuoted(std::string& word, std::size_t end) {
    word += kQuoted;
    for (++at_; at_ + 1 < end; ++at_) word += IsOfName(sql_[at_]) ? Small(sql_[at_]) : '_';
    at_ = end;
  }

  /// After what is quoted, or a comment, that begins here; of what servers of a version read, after its mark.
  [[nodiscard]] std::size_t HiddenTo() const {
    std::size_t read = at_;
    if (sql_.substr(at_, 3) == "/*!") read += 3;
    if (sql_.substr(at_, 4) == "/*M!") read += 4;
    if (read == at_) return QuotedTo(sql_, at_);
    while (read < sql_.size() && sql_[read] >= '0' && sql_[read] <= '9') ++read;
    return read;
  }

  std::string_view sql_;
  std::size_t at_ = 0;
};

/// Takes in the words of a text, and finds what is called.
class Calls {
 public:
  void Take(std::string& word) {
    Conclude(word);
    if (word == "(") {
      const bool named = !last_.empty() && (IsOfPath(last_[0]) || last_[0] == kQuoted);
      const bool calls = named && !IsKnown(last_) && !NamesNoCall(before_);
      open_.push_back(calls ? last_ : "");
    } else if (word == ")" && !open_.empty()) {
      closed_ = std::move(open_.back());
      open_.pop_back();
    }
    const bool next = last_ == "value" && before_ == "next";
    if (next && (word == "for" || text::StartsWith(word, "for\1"))) found_.insert("nextval");  // FOR`s` is one word.
    const bool of = text::EndsWith(word, ".nextval") || text::EndsWith(word, ".\1nextval");
    if (of || (word == "nextval" && text::EndsWith(last_, "."))) found_.insert("nextval");
    std::swap(before_, last_);
    std::swap(last_, word);
  }

  Functions Found() {
    for (const std::string& each : open_) Add(each);
    Add(closed_);
    return std::move(found_);
  }

 private:
  /// A parenthesis before `AS (` had the columns of a common table expression.
  void Conclude(const std::string& word) {
    if (closed_.empty()) return;
    if (!as_ && word == "as") {
      as_ = true;
      return;
    }
    if (!as_ || word != "(") Add(closed_);
    closed_.clear();
    as_ = false;
  }

  void Add(std::string name) {
    name.erase(std::remove(name.begin(), name.end(), kQuoted), name.end());
    if (!name.empty()) found_.insert(std::move(name));
  }

  std::string before_;
  std::string last_;
  std::vector<std::string> open_;  ///< Of each parenthesis, what it may call.
  std::string closed_;             ///< The same of the one that was closed last, until it is known whether it does.
  bool as_ = false;
  Functions found_;
};

bool IsDeclarable(std::string_view name) {
  const auto parts = text::Split(name, '.');
  return parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return !part.empty() && std::all_of(part.begin(), part.end(), IsOfName);
         });
}

}  // namespace

Functions CallsOf(std::string_view sql) {
  if (sql.size() > kLongestText) return {};
  // As most statements.
  if (sql.find('(') == std::string_view::npos && sql.find_first_of("xX") == std::string_view::npos) return {};
  Calls calls;
  Words words(sql);
  for (std::string word; words.Next(word);) calls.Take(word);
  return calls.Found();
}

Functions CallsOf(const Functions& called, Flavor flavor) {
  Functions others;
  for (const std::string& each : called) {
    if (!IsOwn(flavor, each)) others.insert(each);
  }
  return others;
}

bool IsOfSequence(std::string_view function) { return function == "nextval" || function == "setval"; }

Functions Declared(const Functions& readonly_functions) {
  Functions declared;
  for (std::string each : readonly_functions) {
    if (!IsDeclarable(each)) {
      throw ConfigurationError("readonly_functions are names, each name or schema.name without quotes: '" + each + "'");
    }
    std::transform(each.begin(), each.end(), each.begin(), Small);
    declared.insert(std::move(each));
  }
  return declared;
}

}  // namespace antipode::mysql
