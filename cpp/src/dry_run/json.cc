#include "dry_run/json.h"

#include <cstdint>
#include <cstdio>

namespace antipode::dry_run::json {
namespace {

/// What stands for a log where records name a promise.
constexpr std::string_view kPromises = "promise";
constexpr std::uint32_t kReplacement = 0xFFFD;

void AppendUnit(std::string& json, std::uint32_t unit) {
  json += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4)
    json += "0123456789abcdef"[(unit >> static_cast<unsigned>(shift)) & 0xFU];
}

void AppendEscaped(std::string& json, std::uint32_t point) {
  if (point < 0x10000U) {
    AppendUnit(json, point);
    return;
  }
  AppendUnit(json, 0xD800U + ((point - 0x10000U) >> 10U));
  AppendUnit(json, 0xDC00U + ((point - 0x10000U) & 0x3FFU));
}

/// Takes one character from the front of a text.
std::uint32_t Taken(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t more = first < 0x80 ? 0 : first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 4;
  std::uint32_t point = more == 0 ? first : first & (0x3FU >> more);
  bool valid = more < 4 && more < text.size() && first < 0xF8;
  for (std::size_t i = 1; valid && i <= more; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    valid = (next & 0xC0U) == 0x80U;
    point = (point << 6U) | (next & 0x3FU);
  }
  static constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  valid = valid && point >= kLeast[more] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
  text.remove_prefix(valid ? more + 1 : 1);
  return valid ? point : kReplacement;
}

template <typename All, typename Render>
std::string List(const All& all, Render render) {
  std::string json = "[";
  for (const auto& each : all) {
    if (json.size() > 1) json += ',';
    json += render(each);
  }
  return json + "]";
}

std::string Named(const std::string& datastore, std::string_view log, std::string_view version) {
  return R"({"datastore":)" + Text(datastore) + R"(,"log":)" + Text(log) + R"(,"version":)" + Text(version) + "}";
}

}  // namespace

std::string Text(std::string_view value) {
  std::string json = "\"";
  while (!value.empty()) {
    const std::uint32_t point = Taken(value);
    if (point == '"' || point == '\\') {
      json += '\\';
      json += static_cast<char>(point);
    } else if (point < ' ' || point > '~') {
      AppendEscaped(json, point);
    } else {
      json += static_cast<char>(point);
    }
  }
  return json + "\"";
}

std::string TextOrNull(const std::optional<std::string>& value) { return value ? Text(*value) : "null"; }

std::string Seconds(std::optional<double> value) {
  if (!value) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", *value);
  return text;
}

std::string Texts(const std::set<std::string>& values) {
  return List(values, [](const std::string& each) { return Text(each); });
}

std::string Site(const Place& place) {
  return R"({"file":)" + Text(place.file) + R"(,"line":)" + std::to_string(place.line) + R"(,"function":)" +
         Text(place.function) + "}";
}

std::string Write(const Dependency& found) {
  if (const auto* promise = std::get_if<Promise>(&found)) return Named(promise->datastore, kPromises, promise->id);
  const auto& write = std::get<WriteId>(found);
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  return Named(write.datastore, write.key,
               number != nullptr ? std::to_string(*number) : std::get<std::string>(write.version));
}

std::string Writes(const std::vector<Dependency>& found) {
  std::set<std::string> each;
  for (const Dependency& one : found) each.insert(Write(one));
  return List(each, [](const std::string& one) { return one; });
}

}  // namespace antipode::dry_run::json
