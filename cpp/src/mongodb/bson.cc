#include "mongodb/bson.h"

namespace antipode::mongodb {
namespace {

constexpr unsigned kIncrementBits = 32;

int SizeOf(std::string_view text) { return static_cast<int>(text.size()); }

}  // namespace

Doc& Doc::Add(std::string_view name, bool value) {
  bson_append_bool(get(), name.data(), SizeOf(name), value);
  return *this;
}

Doc& Doc::Add(std::string_view name, int value) {
  bson_append_int32(get(), name.data(), SizeOf(name), value);
  return *this;
}

Doc& Doc::Add(std::string_view name, std::int64_t value) {
  bson_append_int64(get(), name.data(), SizeOf(name), value);
  return *this;
}

Doc& Doc::Add(std::string_view name, std::string_view value) {
  bson_append_utf8(get(), name.data(), SizeOf(name), value.data(), SizeOf(value));
  return *this;
}

Doc& Doc::Add(std::string_view name, Stamp value) {
  bson_append_timestamp(get(), name.data(), SizeOf(name), static_cast<std::uint32_t>(value.version >> kIncrementBits),
                        static_cast<std::uint32_t>(value.version));
  return *this;
}

Doc& Doc::Add(std::string_view name, Bytes value) {
  bson_append_binary(get(), name.data(), SizeOf(name), BSON_SUBTYPE_BINARY,
                     reinterpret_cast<const std::uint8_t*>(value.value.data()),
                     static_cast<std::uint32_t>(value.value.size()));
  return *this;
}

Doc& Doc::Add(std::string_view name, Date value) {
  bson_append_date_time(get(), name.data(), SizeOf(name), value.unix_ms);
  return *this;
}

Doc& Doc::Add(std::string_view name, const Doc& value) {
  bson_append_document(get(), name.data(), SizeOf(name), &value.bson());
  return *this;
}

Doc& Doc::Add(std::string_view name, const Array& value) {
  bson_append_array(get(), name.data(), SizeOf(name), &value.items().bson());
  return *this;
}

Doc& Doc::Add(std::string_view name, const Value& value) {
  bson_append_iter(get(), name.data(), SizeOf(name), &value.at);
  return *this;
}

std::optional<Value> At(const bson_t& document, const char* path) {
  bson_iter_t top;
  Value found;
  if (!bson_iter_init(&top, &document) || !bson_iter_find_descendant(&top, path, &found.at)) return std::nullopt;
  return found;
}

std::optional<std::uint64_t> StampAt(const bson_t& document, const char* path) {
  const auto found = At(document, path);
  if (!found || bson_iter_type(&found->at) != BSON_TYPE_TIMESTAMP) return std::nullopt;
  std::uint32_t seconds = 0;
  std::uint32_t increment = 0;
  bson_iter_timestamp(&found->at, &seconds, &increment);
  return std::uint64_t{seconds} << kIncrementBits | increment;
}

std::optional<std::int64_t> IntAt(const bson_t& document, const char* path) {
  const auto found = At(document, path);
  if (!found || !BSON_ITER_HOLDS_NUMBER(&found->at)) return std::nullopt;
  return bson_iter_as_int64(&found->at);
}

std::optional<std::string> TextAt(const bson_t& document, const char* path) {
  const auto found = At(document, path);
  return found ? TextIn(*found) : std::nullopt;
}

std::optional<Doc> DocAt(const bson_t& document, const char* path) {
  const auto found = At(document, path);
  return found ? DocIn(*found) : std::nullopt;
}

bool TrueAt(const bson_t& document, const char* path) {
  const auto found = At(document, path);
  return found && bson_iter_as_bool(&found->at);
}

std::optional<Doc> DocIn(const Value& value) {
  const std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
  if (BSON_ITER_HOLDS_DOCUMENT(&value.at)) {
    bson_iter_document(&value.at, &size, &data);
  } else if (BSON_ITER_HOLDS_ARRAY(&value.at)) {
    bson_iter_array(&value.at, &size, &data);
  }
  bson_t found;
  if (data == nullptr || !bson_init_static(&found, data, size)) return std::nullopt;
  return Doc(found);
}

std::optional<std::string> TextIn(const Value& value) {
  if (!BSON_ITER_HOLDS_UTF8(&value.at)) return std::nullopt;
  std::uint32_t size = 0;
  const char* text = bson_iter_utf8(&value.at, &size);
  return std::string(text, size);
}

}  // namespace antipode::mongodb
