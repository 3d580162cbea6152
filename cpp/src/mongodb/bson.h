// BSON documents, built by chained calls and read by paths.
#pragma once

#include <bson/bson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace antipode::mongodb {

/// A BSON timestamp as one integer that is ordered alike.
struct Stamp {
  std::uint64_t version;
};
/// A value that is kept as bytes.
struct Bytes {
  std::string_view value;
};

/// Milliseconds since 1970.
struct Date {
  std::int64_t unix_ms;
};

/// A value in a document that outlives this. A class, since templates lose the alignment of the library's type.
struct Value {
  bson_iter_t at;
};

class Array;

/// A document. Copies are deep.
class Doc {
 public:
  Doc() : bson_(bson_new()) {}
  explicit Doc(const bson_t& other) : bson_(bson_copy(&other)) {}
  Doc(const Doc& other) : Doc(*other.bson_) {}
  Doc(Doc&& other) noexcept : bson_(std::exchange(other.bson_, nullptr)) {}
  Doc& operator=(Doc other) noexcept {
    std::swap(bson_, other.bson_);
    return *this;
  }
  ~Doc() { bson_destroy(bson_); }

  Doc& Add(std::string_view name, bool value);
  Doc& Add(std::string_view name, int value);
  Doc& Add(std::string_view name, std::int64_t value);
  Doc& Add(std::string_view name, std::string_view value);
  Doc& Add(std::string_view name, const char* value) { return Add(name, std::string_view(value)); }
  Doc& Add(std::string_view name, Stamp value);
  Doc& Add(std::string_view name, Bytes value);
  Doc& Add(std::string_view name, Date value);
  Doc& Add(std::string_view name, const Doc& value);
  Doc& Add(std::string_view name, const Array& value);
  Doc& Add(std::string_view name, const Value& value);

  [[nodiscard]] const bson_t& bson() const { return *bson_; }
  [[nodiscard]] bson_t* get() { return bson_; }

 private:
  bson_t* bson_;
};

/// A list of values.
class Array {
 public:
  template <typename T>
  Array& Add(const T& value) {
    items_.Add(std::to_string(size_++), value);
    return *this;
  }
  [[nodiscard]] const Doc& items() const { return items_; }

 private:
  Doc items_;
  int size_ = 0;
};

/// A document of one field: what commands and expressions are made of.
template <typename T>
Doc Only(std::string_view name, const T& value) {
  Doc made;
  made.Add(name, value);
  return made;
}
template <typename... T>
Array List(const T&... values) {
  Array made;
  (made.Add(values), ...);
  return made;
}

/// What lies at a path of names with dots between them.
std::optional<Value> At(const bson_t& document, const char* path);
std::optional<std::uint64_t> StampAt(const bson_t& document, const char* path);
std::optional<std::int64_t> IntAt(const bson_t& document, const char* path);
std::optional<std::string> TextAt(const bson_t& document, const char* path);
std::optional<Doc> DocAt(const bson_t& document, const char* path);
bool TrueAt(const bson_t& document, const char* path);

/// The document or list at an iterator.
std::optional<Doc> DocIn(const Value& value);
std::optional<std::string> TextIn(const Value& value);

}  // namespace antipode::mongodb
