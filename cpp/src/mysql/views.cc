#include "mysql/views.h"

#include <algorithm>
#include <array>
#include <utility>

#include "antipode/text.h"
#include "mysql/connection.h"
#include "mysql/statements.h"

namespace antipode::mysql {
namespace {

/// After this what was asked is asked again: others may have changed what names stand for.
constexpr double kFreshS = 60;
/// How many names are known of one connection, how many of one statement are asked about, and how many views a server
/// may have that are asked for.
constexpr std::size_t kMost = 256;
constexpr std::size_t kMostAsked = 8;
constexpr std::size_t kMostListed = 1023;
constexpr const char* kListed =
    "SELECT TABLE_NAME AS name FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN"
    " ('information_schema', 'mysql', 'performance_schema', 'sys') LIMIT 1024";

bool IsOfName(char each) {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') || each == '_' ||
         each == '$' || static_cast<unsigned char>(each) >= 0x80;
}
bool IsSpace(char each) { return each == ' ' || (each >= '\t' && each <= '\r'); }
bool IsQuote(char each) { return each == '`' || each == '"'; }

/// The words of a text, quoted names as they are, and all else that is no white space, as one character each. Strings
/// and comments are left out, but for what servers of a version read.
std::vector<std::string_view> WordsOf(std::string_view sql) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < sql.size();) {
    const char first = sql[at];
    std::size_t end = at + 1;
    if (IsSpace(first)) {
      at = end;
      continue;
    }
    const bool versioned = sql.substr(at, 3) == "/*!" || sql.substr(at, 4) == "/*M!";
    if (first == '\'' || (!versioned && (first == '/' || first == '#' || first == '-'))) {
      if (const std::size_t hidden = QuotedTo(sql, at); hidden != 0) {
        if (first == '\'') words.push_back("'");
        at = hidden;
        continue;
      }
    } else if (IsQuote(first)) {
      end = QuotedTo(sql, at);
    } else if (IsOfName(first)) {
      while (end < sql.size() && IsOfName(sql[end])) ++end;
    }
    words.push_back(sql.substr(at, end - at));
    at = end;
  }
  return words;
}

bool IsPart(std::string_view word) { return IsOfName(word[0]) || (IsQuote(word[0]) && word.size() > 2); }

std::string_view Unquoted(std::string_view part) {
  return !part.empty() && IsQuote(part[0]) ? part.substr(1, part.size() - 2) : part;
}

bool NamesTables(std::string_view word) {
  static constexpr std::array<std::string_view, 4> kBefore{"from", "join", "straight_join", "table"};
  return std::find(kBefore.begin(), kBefore.end(), text::Lower(word)) != kBefore.end();
}

bool IsOfSystem(std::string_view schema) {
  static constexpr std::array<std::string_view, 4> kSystem{"information_schema", "mysql", "performance_schema", "sys"};
  return std::find(kSystem.begin(), kSystem.end(), text::Lower(Unquoted(schema))) != kSystem.end();
}

/// Reads names from a list of tables.
class Tables {
 public:
  explicit Tables(std::string_view sql) : words_(WordsOf(sql)) {}

  std::set<std::string> Found() {
    for (std::size_t at = 0; at < words_.size(); ++at) {
      if (NamesTables(words_[at])) TakeList(at + 1);
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool Is(std::size_t at, std::string_view word) const {
    return at < words_.size() && words_[at] == word;
  }
  [[nodiscard]] bool Part(std::size_t at) const { return at < words_.size() && IsPart(words_[at]); }

  void TakeList(std::size_t at) {
    for (bool more = true; more;) {
      while (Is(at, "(")) ++at;
      if (!Part(at)) return;
      const bool whole = Is(at + 1, ".") && Part(at + 2);
      const std::string_view schema = whole ? words_[at] : std::string_view();
      if (!IsOfSystem(schema)) {
        found_.insert(whole ? std::string(schema) + "." + std::string(words_[at + 2]) : std::string(words_[at]));
      }
      at += whole ? 3 : 1;
      if (at < words_.size() && text::Lower(words_[at]) == "as" && Part(at + 1)) ++at;
      if (Part(at)) ++at;  // What the table is called here.
      while (Is(at, ")")) ++at;
      more = Is(at++, ",");
    }
  }

  std::vector<std::string_view> words_;
  std::set<std::string> found_;
};

/// Without its schema and quotes, in small letters.
std::string TableOf(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return text::Lower(Unquoted(dot == std::string_view::npos ? name : name.substr(dot + 1)));
}

std::string Quoted(std::string_view name) {
  std::string quoted;
  for (const std::string_view part : text::Split(name, '.')) {
    quoted += (quoted.empty() ? "`" : ".`") + std::string(Unquoted(part)) + "`";
  }
  return quoted;
}

/// What a view is made of; nothing for a table, and none where nobody says.
std::optional<std::string> DefinitionOf(const std::string& name, const Asked& asked) {
  try {
    const std::vector<Row> rows = asked("SHOW CREATE TABLE " + Quoted(name));
    const auto found = rows.empty() ? Row::const_iterator() : rows[0].find("Create View");
    if (rows.empty() || found == rows[0].end()) return "";
    const std::size_t select = found->second.find(" AS select ");
    return select == std::string::npos ? found->second : found->second.substr(select + 4);
  } catch (const Lost&) {
    throw;
  } catch (const Error& error) {
    // It stands for nothing: it is of a common table expression.
    const bool nothing = error.number() == 1046 || error.number() == 1049 || error.number() == 1146;
    return nothing ? std::optional<std::string>("") : std::nullopt;
  }
}

}  // namespace

std::set<std::string> NamesRead(std::string_view sql) { return Tables(sql.substr(0, kLongestText)).Found(); }

bool Listing::Empty(const std::string& server, double now_s) {
  const std::lock_guard guard(lock_);
  const Listed& known = listed_[server];
  return now_s < known.until_s && known.names && known.names->empty();
}

std::set<std::string> Listing::Views(const std::string& server, std::set<std::string> names, const Asked& asked,
                                     double now_s) {
  Listed known;
  {
    const std::lock_guard guard(lock_);
    known = listed_[server];
  }
  if (now_s >= known.until_s) {
    known = {std::nullopt, now_s + kFreshS};
    try {
      const std::vector<Row> rows = asked(kListed);
      if (rows.size() <= kMostListed) known.names.emplace();
      for (const Row& row : rows) {
        if (known.names) known.names->insert(TableOf(row.at("name")));
      }
    } catch (const Lost&) {
      throw;
    } catch (const Error&) {
      known.names = std::nullopt;  // Who may not ask knows of no name what it is.
    }
    const std::lock_guard guard(lock_);
    listed_[server] = known;
  }
  for (auto each = names.begin(); known.names && each != names.end();) {
    each = known.names->count(TableOf(*each)) == 0 ? names.erase(each) : std::next(each);
  }
  return names;
}

void Listing::Forget(const std::string& server) {
  const std::lock_guard guard(lock_);
  listed_[server].until_s = 0;
}

bool ViewsSeen::Writes(const std::string& name) const {
  const auto found = known_.find(name);
  return found == known_.end() || found->second;
}

bool ViewsSeen::MayWrite(const std::set<std::string>& names, Flavor flavor, const Functions& harmless,
                         const Asked& asked, double now_s) {
  if (now_s - since_s_ > kFreshS || known_.size() > kMost) {
    known_.clear();
    since_s_ = now_s;
  }
  std::size_t left = kMostAsked;
  for (const std::string& each : names) {
    if (known_.count(each) != 0) continue;
    if (left-- == 0) break;
    Ask(each, flavor, harmless, asked);
  }
  return std::any_of(names.begin(), names.end(), [this](const std::string& each) { return Writes(each); });
}

void ViewsSeen::Ask(const std::string& name, Flavor flavor, const Functions& harmless, const Asked& asked) {
  known_[name] = false;  // A view is not made of itself.
  const std::optional<std::string> made_of = DefinitionOf(name, asked);
  bool writes = !made_of || made_of->size() > kLongestText;
  if (made_of) {
    for (const std::string& each : CallsOf(CallsOf(*made_of), flavor)) writes = writes || harmless.count(each) == 0;
    for (const std::string& each : NamesRead(*made_of)) {
      if (known_.count(each) == 0) Ask(each, flavor, harmless, asked);
      writes = writes || Writes(each);
    }
  }
  known_[name] = writes;
}

}  // namespace antipode::mysql
