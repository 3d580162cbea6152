#include "mongodb/beside.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "antipode/observer.h"
#include "antipode/settings.h"
#include "antipode/stored.h"

namespace antipode::mongodb {
namespace {

constexpr std::size_t kDigestBytes = 9;
constexpr int kMostParts = 16;
constexpr std::size_t kMostPositions = 16;
constexpr std::size_t kMostLogs = 64;
constexpr double kDayS = 86'400;
constexpr std::size_t kMostNameBytes = 1'024;
constexpr int kSlots = 8;
const std::string& kCovering = *new std::string("/c");
const Incomplete& kSizeMark = *new Incomplete{"", "size"};

std::string DigestOf(const Doc& holder) {
  const bson_t& bson = holder.bson();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  EVP_Digest(bson_get_data(&bson), bson.len, digest.data(), nullptr, EVP_sha256(), nullptr);
  std::array<unsigned char, 4 * kDigestBytes / 3 + 1> text{};
  EVP_EncodeBlock(text.data(), digest.data(), kDigestBytes);
  std::string url_safe(text.begin(), text.end() - 1);
  std::replace(url_safe.begin(), url_safe.end(), '+', '-');
  std::replace(url_safe.begin(), url_safe.end(), '/', '_');
  return url_safe;
}

std::pair<Lineage, Match> Unreadable(const std::string& datastore) {
  return {StoredLineage(datastore, "?"), Match::kUnreadable};
}

Lineage PartOf(const std::optional<std::string>& text, const std::string& datastore) {
  const std::size_t bar = text ? text->find('|') : std::string::npos;
  if (bar == std::string::npos) return Unreadable(datastore).first;
  return StoredLineage(datastore, std::string_view(*text).substr(bar + 1));
}

std::string Part(const Lineage& lineage) { return "~|" + StoredText(lineage); }

bool IsPlain(unsigned char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '-' ||
         byte == '_';
}

std::string Escaped(const std::string& name) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const char each : name) {
    const auto byte = static_cast<unsigned char>(each);
    if (IsPlain(byte)) {
      text += each;
    } else {
      text += {'~', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return text;
}

/// The name that was escaped. Throws std::invalid_argument.
std::string Unescaped(const std::string& text) {
  std::string name;
  for (std::size_t n = 0; n < text.size(); ++n) {
    if (text[n] != '~') {
      name += text[n];
      continue;
    }
    const std::string digits = text.substr(n + 1, 2);
    if (digits.size() < 2 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
      throw std::invalid_argument(text);
    }
    name += static_cast<char>(std::stoi(digits, nullptr, 16));
    n += 2;
  }
  return name;
}

std::string NameOfLog(const WriteId& write) {
  return Escaped(write.datastore) + "/" + Escaped(write.key) + (write.covering ? kCovering : "");
}

/// The write of a position that is kept as a number. Throws std::invalid_argument.
WriteId WriteOf(std::string name, const Doc& number) {
  const auto version = IntAt(number.bson(), "v");
  const auto hour = IntAt(number.bson(), "h");
  const bool covering = name.size() > kCovering.size() && name.find('/') < name.size() - kCovering.size() &&
                        name.compare(name.size() - kCovering.size(), kCovering.size(), kCovering) == 0;
  if (covering) name.resize(name.size() - kCovering.size());
  const std::size_t slash = name.find('/');
  if (!version || !hour || *version < 0 || *hour < 0 || slash == std::string::npos || slash != name.rfind('/')) {
    throw std::invalid_argument(name);
  }
  return {Unescaped(name.substr(0, slash)), Unescaped(name.substr(slash + 1)), static_cast<std::uint64_t>(*version),
          static_cast<std::uint64_t>(*hour), covering};
}

std::optional<Lineage> LineageOfNumbers(const Value& numbers) {
  Value each;
  if (!BSON_ITER_HOLDS_DOCUMENT(&numbers.at) || !bson_iter_recurse(&numbers.at, &each.at)) return std::nullopt;
  LineageParts parts;
  try {
    while (bson_iter_next(&each.at))
      parts.writes.push_back(WriteOf(bson_iter_key(&each.at), DocIn(each).value_or(Doc())));
    return Lineage(parts);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

/// What a document of the field says of texts: of each the text, none for what is no text.
std::vector<std::optional<std::string>> TextsIn(const Value& parts) {
  Value each;
  if (!BSON_ITER_HOLDS_ARRAY(&parts.at) || !bson_iter_recurse(&parts.at, &each.at)) return {std::nullopt};
  std::vector<std::optional<std::string>> texts;
  while (bson_iter_next(&each.at)) texts.push_back(TextIn(each));
  return texts;
}

Lineage Texts(const std::vector<std::optional<std::string>>& texts, const std::string& datastore) {
  Lineage lineage;
  if (texts.size() > std::size_t{kMostParts}) lineage = lineage.Marked(kSizeMark);
  for (const auto& each : texts) lineage = lineage.Merge(PartOf(each, datastore));
  return lineage;
}

/// What lies in the field; a text, or what a plain client put there, becomes a part.
Doc Held() {
  const auto is = [](const char* type) { return Only("$eq", List(Only("$type", "$_ap"), type)); };
  return Only("$switch", Doc()
                             .Add("branches", List(Doc().Add("case", is("object")).Add("then", "$_ap"),
                                                   Doc().Add("case", is("missing")).Add("then", Doc())))
                             .Add("default", Only("p", List("$_ap"))));
}

Doc Let(const Doc& vars, const Doc& in) { return Only("$let", Doc().Add("vars", vars).Add("in", in)); }

/// The field with one more text. Over kMostParts different ones the oldest go, and a mark says so.
Doc WithPart(const std::string& text) {
  const Array added = List(text);
  const std::string full = Part(Lineage().Marked(kSizeMark));
  const Doc is_other = Only("$not", Only("$in", List("$$this", List(text, full))));
  const Doc others = Only("$filter", Doc().Add("input", "$$held").Add("cond", is_other));
  const Doc too_many = Only("$gte", List(Only("$size", "$$others"), kMostParts));
  const Doc marked = Only("$or", List(too_many, Only("$in", List(full, "$$held"))));
  const Doc mark = Only("$cond", List(marked, List(full), Array()));
  const Doc texts = Only("$concatArrays", List(mark, Only("$slice", List("$$others", 1 - kMostParts)), added));
  const Doc parts = Let(Only("held", Only("$ifNull", List("$$whole.p", Array()))), Let(Only("others", others), texts));
  return Let(Only("whole", Held()), Only("$mergeObjects", List("$$whole", Only("p", parts))));
}

/// The field with larger positions. Over kMostLogs those go that were not raised for the longest.
Doc WithLarger(const Doc& numbers) {
  Doc raised;
  Array names;
  int size = 0;
  Value each;
  bson_iter_init(&each.at, &numbers.bson());
  for (; bson_iter_next(&each.at); ++size) {
    const std::string name = bson_iter_key(&each.at);
    raised.Add(name, Only("$max", List(Only("$literal", each), "$_ap.l." + name)));
    names.Add(name);
  }
  const int most = static_cast<int>(kMostLogs) - size;
  const Doc held = Only("$objectToArray", Only("$ifNull", List("$_ap.l", Doc())));
  const Doc is_other = Only("$not", Only("$in", List("$$this.k", names)));
  const Doc others = Only("$filter", Doc().Add("input", held).Add("cond", is_other));
  const Doc kept = Only("$arrayToObject", Only("$slice", List("$$others", -most)));
  const Doc logs = Only("l", Only("$mergeObjects", List(kept, raised)));
  const Doc too_many = Only("$gt", List(Only("$size", "$$others"), most));
  const Doc mark = Only("$cond", List(too_many, Only("d", true), Doc()));
  return Let(Only("others", others), Only("$mergeObjects", List(Held(), logs, mark)));
}

std::string TombstonesOf(const std::string& collection) { return collection + ".antipode"; }

Doc SlotOf(const char* kind, int number) { return Doc().Add("antipode", kind).Add("n", number); }

}  // namespace

std::string NameOf(Match match) {
  switch (match) {
    case Match::kOwn:
      return "own";
    case Match::kAbsent:
      return "companion_absent";
    case Match::kForeign:
      return "foreign";
    case Match::kUnreadable:
      break;
  }
  return "unreadable";
}

Doc Whole(const Doc& holder, const Lineage& lineage) { return Only("w", DigestOf(holder) + "|" + StoredText(lineage)); }

Doc HolderOf(const std::optional<Value>& value) {
  Doc holder;
  if (value) return Only("v", *value);
  bson_append_null(holder.get(), "v", -1);
  return holder;
}

std::pair<Lineage, Match> FoundBeside(const Doc& holder, const std::optional<Value>& beside,
                                      const std::string& datastore) {
  const auto field = beside ? DocIn(*beside) : std::nullopt;
  const auto whole = field && bson_count_keys(&field->bson()) == 1 ? TextAt(field->bson(), "w") : std::nullopt;
  const std::size_t bar = whole ? whole->find('|') : std::string::npos;
  if (bar != std::string::npos) {
    const std::string mark = whole->substr(0, bar);
    if (mark != "~" && mark != DigestOf(holder)) return {Lineage(), Match::kForeign};
  }
  return FoundIn(beside, datastore);
}

std::pair<Lineage, Match> FoundIn(const std::optional<Value>& beside, const std::string& datastore) {
  if (!beside || BSON_ITER_HOLDS_NULL(&beside->at)) return {Lineage(), Match::kAbsent};
  if (BSON_ITER_HOLDS_UTF8(&beside->at)) return {PartOf(TextIn(*beside), datastore), Match::kOwn};
  if (BSON_ITER_HOLDS_ARRAY(&beside->at)) return {Texts(TextsIn(*beside), datastore), Match::kOwn};
  const auto field = DocIn(*beside);
  if (!field || bson_empty(&field->bson())) return Unreadable(datastore);
  Lineage lineage;
  Value each;
  bson_iter_init(&each.at, &field->bson());
  while (bson_iter_next(&each.at)) {
    const std::string_view name = bson_iter_key(&each.at);
    if (name == "w") {
      lineage = lineage.Merge(PartOf(TextIn(each), datastore));
    } else if (name == "l") {
      const auto logs = LineageOfNumbers(each);
      lineage = lineage.Merge(logs ? *logs : Unreadable(datastore).first);
    } else if (name == "p") {
      lineage = lineage.Merge(Texts(TextsIn(each), datastore));
    } else if (name == "d") {
      lineage = lineage.Marked(kSizeMark);
    } else if (name != "b" || !BSON_ITER_HOLDS_UTF8(&each.at)) {
      return Unreadable(datastore);
    }
  }
  return {lineage, Match::kOwn};
}

std::optional<std::string> BirthOf(const bson_t& document) { return TextAt(document, "_ap.b"); }

std::optional<Doc> Numbers::Of(const Lineage& lineage) {
  const std::vector<WriteId> writes = lineage.writes();
  LineageParts only;
  only.writes = writes;
  if (writes.empty() || writes.size() > kMostPositions || Lineage(only) != lineage) return std::nullopt;
  const auto egress = CurrentSettings().egress;
  Doc numbers;
  std::set<std::string> names;
  std::size_t bytes = 0;
  for (const WriteId& each : writes) {
    const auto* version = std::get_if<std::uint64_t>(&each.version);
    if (version == nullptr || *version > INT64_MAX || (egress && egress->count(each.datastore) == 0)) {
      return std::nullopt;
    }
    const std::string name = NameOfLog(each);
    numbers.Add(name,
                Doc().Add("v", static_cast<std::int64_t>(*version)).Add("h", static_cast<int>(each.written_hour)));
    bytes += name.size();
    names.insert(name);
  }
  if (bytes > kMostNameBytes || !Admit(names)) return std::nullopt;
  return numbers;
}

bool Numbers::Admit(const std::set<std::string>& logs) {
  const std::lock_guard guard(lock_);
  if (clock_.Now() - since_s_ > kDayS) {
    logs_.clear();
    since_s_ = clock_.Now();
  }
  std::set<std::string> together = logs_;
  together.insert(logs.begin(), logs.end());
  if (together.size() > kMostLogs) return std::includes(logs_.begin(), logs_.end(), logs.begin(), logs.end());
  logs_ = std::move(together);
  return true;
}

Doc Bury(const std::string& collection, std::string_view id, int slot, const Lineage& lineage, Numbers& numbers) {
  const auto positions = numbers.Of(lineage);
  const Doc field = positions ? WithLarger(*positions) : WithPart(Part(lineage));
  const Array stages = List(Only("$set", Doc().Add("_ap", field).Add("at", "$$NOW")));
  const auto update = [&](const Doc& query) { return Doc().Add("q", query).Add("u", stages).Add("upsert", true); };
  return Doc()
      .Add("update", TombstonesOf(collection))
      .Add("updates", List(update(Only("_id", id)), update(Only("_id", SlotOf("known", slot % kSlots)))))
      .Add("ordered", false);
}

Doc SearchTombstones(const std::string& collection, const std::optional<std::string>& id) {
  Array ids;
  int size = kSlots;
  if (id) ids.Add(*id);
  for (int n = 0; n < kSlots; ++n) ids.Add(SlotOf("unknown", n));
  if (!id) {
    for (int n = 0; n < kSlots; ++n) ids.Add(SlotOf("known", n));
    size += kSlots;
  }
  return Doc()
      .Add("find", TombstonesOf(collection))
      .Add("filter", Only("_id", Only("$in", ids)))
      .Add("projection", Only("_ap", 1))
      .Add("batchSize", size + 1)
      .Add("singleBatch", true);
}

Lineage Buried(const bson_t& reply, const std::string& datastore) {
  Lineage lineage;
  const Doc batch = DocAt(reply, "cursor.firstBatch").value_or(Doc());
  Value each;
  bson_iter_init(&each.at, &batch.bson());
  while (bson_iter_next(&each.at)) {
    const Doc tombstone = DocIn(each).value_or(Doc());
    lineage = lineage.Merge(FoundIn(At(tombstone.bson(), "_ap"), datastore).first);
  }
  return lineage;
}

}  // namespace antipode::mongodb
