#include "mysql/statements.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "mysql/functions.h"

namespace antipode::mysql {
namespace {

/// A longer one asks for more than the session's own values; and expressions recurse.
constexpr std::size_t kLongestSessionRead = 200;
/// What is read of a text that is too long: it may say more than that it does anything.
constexpr std::size_t kHead = 1000;
constexpr Effects kAnything = kReads | kWrites | kCommits;

bool IsSpace(char each) { return each == ' ' || (each >= '\t' && each <= '\r'); }
bool IsLetter(char each) { return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z'); }
bool IsWordly(char each) { return IsLetter(each) || (each >= '0' && each <= '9') || each == '_'; }

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& each : upper) {
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
  }
  return upper;
}

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Whether one of the words, in capitals, is anywhere in a text.
bool HasWord(std::string_view sql, std::initializer_list<std::string_view> words) {
  const std::string upper = Upper(sql);
  for (const std::string_view word : words) {
    for (std::size_t at = upper.find(word); at != std::string::npos; at = upper.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      if ((at == 0 || !IsWordly(upper[at - 1])) && (end == upper.size() || !IsWordly(upper[end]))) return true;
    }
  }
  return false;
}

/// Its words in capitals, parted by white space.
std::vector<std::string> WordsOf(std::string_view sql) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < sql.size();) {
    while (at < sql.size() && IsSpace(sql[at])) ++at;
    const std::size_t begin = at;
    while (at < sql.size() && !IsSpace(sql[at])) ++at;
    if (at > begin) words.push_back(Upper(sql.substr(begin, at - begin)));
  }
  return words;
}

bool Contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string SecondOf(std::string_view sql) {
  const auto words = WordsOf(sql);
  return words.size() > 1 ? words[1] : "";
}

/// What stands in a comment that servers of a version read; nothing where it is none.
std::pair<bool, std::string_view> Versioned(std::string_view comment) {
  const std::size_t mark = comment.substr(0, 3) == "/*!" ? 3 : comment.substr(0, 4) == "/*M!" ? 4 : 0;
  if (mark == 0 || comment.size() < mark + 2 || comment.substr(comment.size() - 2) != "*/") return {};
  std::size_t begin = mark;
  while (begin < comment.size() - 2 && comment[begin] >= '0' && comment[begin] <= '9') ++begin;
  return {true, comment.substr(begin, comment.size() - 2 - begin)};
}

/// A text without what is quoted, and without comments but those with versions.
std::string Blanked(std::string_view sql) {
  std::string blanked;
  for (std::size_t at = 0; at < sql.size();) {
    const std::size_t end = QuotedTo(sql, at);
    if (end == 0) {
      blanked += sql[at++];
      continue;
    }
    const auto [read, inner] = Versioned(sql.substr(at, end - at));
    const char first = sql[at];
    if (read) {
      blanked += inner;
    } else {
      blanked += first == '\'' || first == '"' ? "''" : first == '`' ? "``" : " ";
    }
    at = end;
  }
  return blanked;
}

bool BeginsNone(char each) { return IsSpace(each) || each == '(' || each == ';'; }

/// After the comments that a statement begins with.
std::string Uncommented(std::string_view sql) {
  std::size_t at = 0;
  while (true) {
    while (at < sql.size() && BeginsNone(sql[at])) ++at;
    const bool may = at < sql.size() && (sql[at] == '/' || sql[at] == '#' || sql[at] == '-');
    const std::size_t end = may ? QuotedTo(sql, at) : 0;
    if (end == 0) return std::string(sql.substr(at));
    const auto [read, inner] = Versioned(sql.substr(at, end - at));
    if (read) return std::string(inner) + std::string(sql.substr(end));
    at = end;
  }
}

/// From the first word on; empty where something else comes first.
std::string_view FromWord(std::string_view sql) {
  std::size_t at = 0;
  while (at < sql.size() && BeginsNone(sql[at])) ++at;
  return at < sql.size() && IsLetter(sql[at]) ? sql.substr(at) : std::string_view();
}

/// Whether it asks for the session's own values alone, which no log replicates.
bool IsOfSession(std::string_view sql) {
  if (sql.size() >= kLongestSessionRead) return false;
  static const auto& kValue = *new std::string(
      "(?:@@?[\\w.]+|\\d+|'[^'\\\\]*'|null|true|false|(?:last_insert_id|found_rows|row_count|connection_id|database|"
      "schema"
      "|version|user|current_user|session_user|system_user|current_role|now|sysdate|curdate|curtime|current_date"
      "|current_time|current_timestamp|localtime|localtimestamp|utc_date|utc_time|utc_timestamp|unix_timestamp|uuid|"
      "rand"
      "|pi)\\(\\s*\\d*\\s*\\)|current_(?:user|date|time|timestamp)|localtime(?:stamp)?|utc_(?:date|time|timestamp))"
      "(?:\\s+as\\s+\\w+)?");
  static const auto& kRead =
      *new std::regex("(?:select|do)\\s+" + kValue + "(?:\\s*,\\s*" + kValue + ")*(?:\\s+limit\\s+1)?[\\s;]*",
                      std::regex::icase | std::regex::optimize);
  return std::regex_match(sql.begin(), sql.end(), kRead);
}

/// The last white space and semicolons of a text left out.
std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (IsSpace(text.back()) || text.back() == ';')) text.remove_suffix(1);
  return text;
}

/// Whether words in capitals are the last of a text; what they leave of it, without the space before them.
bool EndsWith(std::string_view& text, std::initializer_list<std::string_view> words) {
  std::string_view left = text;
  for (auto word = std::rbegin(words); word != std::rend(words); ++word) {
    if (left.size() < word->size() || left.substr(left.size() - word->size()) != *word) return false;
    left.remove_suffix(word->size());
    const bool spaced = left.empty() || IsSpace(left.back());
    while (!left.empty() && IsSpace(left.back())) left.remove_suffix(1);
    if (!spaced && (std::next(word) != std::rend(words) || IsWordly(left.back()))) return false;
  }
  text = left;
  return true;
}

/// Whether a SELECT ends with the words of a lock.
bool IsLocking(std::string_view sql) {
  constexpr std::size_t kTail = 40;
  const std::string upper = Upper(sql.substr(sql.size() - std::min(sql.size(), kTail)));
  std::string_view tail = Trimmed(upper);
  std::string_view unnumbered = tail;
  while (!unnumbered.empty() && unnumbered.back() >= '0' && unnumbered.back() <= '9') unnumbered.remove_suffix(1);
  std::string_view waiting = unnumbered;
  while (!waiting.empty() && IsSpace(waiting.back())) waiting.remove_suffix(1);
  const bool waits = unnumbered.size() < tail.size() && waiting.size() < unnumbered.size();
  if (waits && EndsWith(waiting, {"WAIT"})) {
    tail = waiting;
  } else if (!EndsWith(tail, {"NOWAIT"})) {
    EndsWith(tail, {"SKIP", "LOCKED"});
  }
  return EndsWith(tail, {"FOR", "UPDATE"}) || EndsWith(tail, {"FOR", "SHARE"}) ||
         EndsWith(tail, {"LOCK", "IN", "SHARE", "MODE"});
}

/// Whether a text that may lock what it reads names no table of the server's own, which nothing locks.
Effects Locking(std::string_view sql) {
  const std::string upper = Upper(sql);
  return Has(upper, "SCHEMA") || Has(upper, "MYSQL") || Has(upper, "SYS") ? 0 : kLocks;
}

Effects Selecting(std::string_view sql) {
  if (IsLocking(sql)) {
    const std::string_view rest = sql.substr(std::string_view("SELECT").size());
    const bool plain =
        HasWord(rest, {"SELECT", "TABLE", "VALUES", "OF"}) || Has(rest, "--") || Has(rest, "#") || Has(rest, "/*");
    return kReads | (plain ? 0 : Locking(sql));
  }
  return IsOfSession(sql) ? 0 : kReads;
}

Effects Defining(std::string_view sql) {
  const auto words = WordsOf(sql);
  const bool temporary = (words.size() > 1 && words[1] == "TEMPORARY") || (words.size() > 2 && words[2] == "TEMPORARY");
  return (temporary ? kNames : kDefines) | (HasWord(sql, {"SELECT", "RETURNING"}) ? kReads : 0);
}

Effects Starting(std::string_view sql) {
  if (SecondOf(sql).rfind("TRANSACTION", 0) != 0) return kCommits;  // START REPLICA.
  return kCommits | kEnds | kBegins | (Has(Upper(sql), "SNAPSHOT") ? kSnapshot | kReads : 0);
}

Effects Chaining(Effects effects, std::string_view sql) {
  const auto words = WordsOf(sql);
  const auto chain = std::find(words.begin(), words.end(), "CHAIN");
  const bool chains = chain != words.end() && chain != words.begin() && *std::prev(chain) != "NO";
  return effects | (chains ? kBegins : 0);
}

Effects InTwoPhases(const std::string& step) {
  if (step == "COMMIT") return kTwoPhases | kDefines;
  // What is prepared may be committed by anybody, at any time.
  if (step == "PREPARE") return kTwoPhases | kEnds;
  return step == "START" || step == "BEGIN" ? kBegins : 0;
}

/// Whether a text sets a variable to one of two values, and a word ends there.
bool Sets(const std::string& text, std::string_view variable, std::array<std::string_view, 2> values) {
  for (std::size_t at = text.find(variable); at != std::string::npos; at = text.find(variable, at + 1)) {
    std::size_t next = at + variable.size();
    const auto skip = [&] {
      while (next < text.size() && IsSpace(text[next])) ++next;
    };
    skip();
    if (next < text.size() && text[next] == ':') ++next;
    if (next >= text.size() || text[next++] != '=') continue;
    skip();
    for (const std::string_view value : values) {
      const std::size_t end = next + value.size();
      if (text.compare(next, value.size(), value) == 0 && (end == text.size() || !IsWordly(text[end]))) return true;
    }
  }
  return false;
}

Effects Setting(std::string_view sql) {
  const std::string text = Upper(sql);
  Effects effects = 0;
  // SET @x = (SELECT ...), a function of the user's, NEXT VALUE FOR a sequence, or SET STATEMENT ... FOR any statement.
  const bool any = SecondOf(sql) == "STATEMENT";
  const bool next = Has(text, "NEXT") && Has(text, "VALUE");
  if (Has(text, "SELECT") || Has(text, "(") || next || any) effects |= kAnything | (any ? 0 : Locking(sql));
  if (Has(text, "AUTOCOMMIT") || Has(text, "PASSWORD")) effects |= kCommits;
  if (Has(text, "ISOLATION")) effects |= kIsolation | (Has(text, "SESSION") ? 0 : kNextOnly);
  if (Has(text, "SESSION_TRACK")) effects |= kTracking;
  if (Has(text, "GTID_NEXT") || Has(text, "SERVER_ID")) effects |= kNumbers;
  if (Has(text, "SQL_LOG_BIN") || Has(text, "SKIP_REPLICATION")) {
    const bool logged = Sets(text, "SQL_LOG_BIN", {"1", "ON"}) || Sets(text, "SKIP_REPLICATION", {"0", "OFF"});
    effects |= logged ? kLogged : kUnlogged;
  }
  return effects;
}

/// What SHOW shows without a table of the data dictionary.
bool IsShown(const std::string& what) {
  static const auto& kShown = *new std::set<std::string>{
      "CREATE", "VARIABLES",   "STATUS", "GLOBAL",  "SESSION", "LOCAL",      "WARNINGS", "ERRORS",  "COUNT(*)",
      "GRANTS", "PROCESSLIST", "ENGINE", "ENGINES", "PLUGINS", "PRIVILEGES", "OPEN",     "PROFILE", "PROFILES",
      "BINARY", "BINLOG",      "MASTER", "SLAVE",   "REPLICA", "REPLICAS",   "RELAYLOG"};
  return kShown.count(what) != 0;
}

using ByText = Effects (*)(std::string_view sql);

template <Effects effects>
Effects Always(std::string_view) {
  return effects;
}

Effects Writing(std::string_view sql) {
  return kWrites | (HasWord(sql, {"SELECT", "RETURNING", "TABLE"}) ? kReads | Locking(sql) : 0);
}
Effects Loading(std::string_view sql) { return kWrites | (HasWord(sql, {"SELECT", "RETURNING"}) ? kReads : 0); }

/// By the first word; all else does anything: CALL, EXECUTE, HANDLER, ANALYZE and compound statements among them.
const std::map<std::string, ByText>& FirstWords() {
  static const auto& kWords = *new std::map<std::string, ByText>([] {
    std::map<std::string, ByText> words;
    const auto all = [&](std::initializer_list<const char*> names, ByText effects) {
      for (const char* name : names) words[name] = effects;
    };
    all({"SELECT"}, Selecting);
    all({"TABLE", "VALUES", "DESCRIBE", "DESC", "CHECKSUM"}, Always<kReads>);
    all({"INSERT", "REPLACE", "UPDATE", "DELETE"}, Writing);
    all({"DO"}, [](std::string_view sql) -> Effects { return IsOfSession(sql) ? 0 : kAnything; });
    all({"LOAD"}, Loading);
    all({"HELP", "SAVEPOINT", "RELEASE", "DEALLOCATE", "PREPARE", "KILL", "GET", "PURGE"}, Always<0>);
    all({"USE"}, Always<kNames>);
    all({"LOCK"}, Always<kCommits | kEnds>);
    // Whether they commit what is open, the server's flags say alone.
    all({"UNLOCK", "CACHE", "CHANGE", "STOP", "RESET", "INSTALL", "UNINSTALL"}, Always<kCommits>);
    all({"ALTER", "RENAME", "TRUNCATE", "GRANT", "REVOKE", "FLUSH", "OPTIMIZE", "REPAIR", "IMPORT"}, Always<kDefines>);
    all({"CREATE", "DROP"}, Defining);
    all({"WITH"}, [](std::string_view sql) -> Effects {
      return kReads | (HasWord(sql, {"UPDATE", "DELETE", "INSERT", "REPLACE"}) ? kWrites : 0);
    });
    all({"EXPLAIN"},
        [](std::string_view sql) -> Effects { return kReads | (Contains(WordsOf(sql), "ANALYZE") ? kWrites : 0); });
    all({"START"}, Starting);
    // MariaDB's BEGIN NOT ATOMIC holds statements.
    all({"BEGIN"}, [](std::string_view sql) -> Effects {
      return Contains(WordsOf(sql), "NOT") ? kAnything | kEnds : kCommits | kEnds | kBegins;
    });
    all({"COMMIT"}, [](std::string_view sql) { return Chaining(kCommits | kEnds, sql); });
    // ROLLBACK TO keeps the transaction and its snapshot.
    all({"ROLLBACK"},
        [](std::string_view sql) -> Effects { return Contains(WordsOf(sql), "TO") ? 0 : Chaining(kEnds, sql); });
    all({"XA"}, [](std::string_view sql) { return InTwoPhases(SecondOf(sql)); });
    all({"SET"}, Setting);
    all({"SHOW"}, [](std::string_view sql) -> Effects { return IsShown(SecondOf(sql)) ? 0 : kMaySnapshot; });
    return words;
  }());
  return kWords;
}

Effects ByWord(std::string_view sql) {
  std::size_t end = 0;
  while (end < sql.size() && IsLetter(sql[end])) ++end;
  const auto found = FirstWords().find(Upper(sql.substr(0, end)));
  return found == FirstWords().end() ? kAnything : found->second(sql);
}

Effects OfOne(std::string_view sql) {
  if (const std::string_view found = FromWord(sql); !found.empty()) return ByWord(found);
  // After comments, or within one that has a version.
  const std::string plain = Uncommented(sql);
  if (const std::string_view found = FromWord(plain); !found.empty()) return ByWord(found);
  return plain.empty() ? 0 : kAnything | kEnds;
}

/// What the statements of a text do, but for what they call.
Effects OfAll(std::string_view sql) {
  if (!Has(sql, ";")) return OfOne(sql);
  const std::string blanked = Blanked(sql);
  Effects effects = 0;
  int parts = 0;
  for (std::size_t at = 0; at <= blanked.size();) {
    const std::size_t end = std::min(blanked.find(';', at), blanked.size());
    const std::string_view part = std::string_view(blanked).substr(at, end - at);
    at = end + 1;
    if (std::all_of(part.begin(), part.end(), IsSpace)) continue;
    effects |= OfOne(part);
    ++parts;
  }
  return parts > 1 ? (effects | kSeveral) & ~kLocks : OfOne(sql);  // Which of them reads it does not say.
}

}  // namespace

Effects EffectsOf(std::string_view sql) {
  if (sql.size() > kLongestText) return kAnything | kSeveral | (EffectsOf(sql.substr(0, kHead)) & ~kLocks);
  const Effects effects = OfAll(sql);
  // Others do anything, or call none.
  const bool may = (effects & (kReads | kWrites | kMaySnapshot)) != 0 && (effects & kAnything) != kAnything &&
                   (effects & kDefines) != kDefines;
  return may && !CallsOf(sql).empty() ? effects | kCalls : effects;
}

std::size_t QuotedTo(std::string_view sql, std::size_t at) {
  const char first = sql[at];
  const auto after = [&](std::size_t found, std::size_t size) {
    return found == std::string_view::npos ? sql.size() : found + size;
  };
  if (first == '`') return after(sql.find('`', at + 1), 1);
  if (first == '\'' || first == '"') {
    for (std::size_t end = at + 1; end < sql.size(); ++end) {
      if (sql[end] == '\\') {
        ++end;
      } else if (sql[end] == first) {
        return end + 1;
      }
    }
    return sql.size();
  }
  if (sql.substr(at, 2) == "/*") return after(sql.find("*/", at + 2), 2);
  const bool dashes = sql.substr(at, 2) == "--" && at + 2 < sql.size() && IsSpace(sql[at + 2]);
  return first == '#' || dashes ? after(sql.find('\n', at), 0) : 0;
}

std::vector<std::string_view> NamesOf(Effects effects) {
  static constexpr std::array<std::string_view, 18> kNamesInOrder{
      "reads",    "writes",  "commits", "ends",     "begins",     "snapshot", "may_snapshot", "isolation", "next_only",
      "tracking", "numbers", "logged",  "unlogged", "two_phases", "names",    "several",      "",          "locks"};
  std::vector<std::string_view> names;
  for (std::size_t nth = 0; nth < kNamesInOrder.size(); ++nth) {
    if ((effects >> nth & 1U) != 0 && !kNamesInOrder[nth].empty()) names.push_back(kNamesInOrder[nth]);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace antipode::mysql
