#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "antipode/export.h"

namespace antipode {

/// The root of what the library throws on purpose. Programs compare `code()`; messages are for people.
class ANTIPODE_EXPORT AntipodeError : public std::runtime_error {
 public:
  AntipodeError(std::string_view code, const std::string& message);
  ~AntipodeError() override;

  /// The stable code of the specification, such as `barrier_timeout`.
  [[nodiscard]] const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

/// A setup that cannot work.
class ANTIPODE_EXPORT ConfigurationError : public AntipodeError {
 public:
  explicit ConfigurationError(const std::string& message);
  ~ConfigurationError() override;
};

/// Throws it. For headers, which programs include that are compiled without exceptions.
[[noreturn]] ANTIPODE_EXPORT void ThrowConfigurationError(const std::string& message);

/// Why a text is no lineage.
struct DecodeFault {
  std::string_view code;   ///< One of the codes of the lineage format.
  std::string message;     ///< For people.
  std::size_t offset = 0;  ///< The byte at which the text stops being a lineage.
};

/// A text is no lineage.
class ANTIPODE_EXPORT LineageDecodeError : public AntipodeError {
 public:
  explicit LineageDecodeError(const DecodeFault& fault);
  ~LineageDecodeError() override;

  /// The byte at which the text stops being a lineage.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }

 private:
  std::size_t offset_;
};

/// A connection reads from a snapshot that is older than what is waited for: end its transaction before the read.
class ANTIPODE_EXPORT StaleSnapshot : public AntipodeError {
 public:
  explicit StaleSnapshot(const std::string& message);
  ~StaleSnapshot() override;
};

/// A branch fulfils a promise that was abandoned: its transaction must not commit.
class ANTIPODE_EXPORT PromiseAbandoned : public AntipodeError {
 public:
  explicit PromiseAbandoned(const std::string& id);
  ~PromiseAbandoned() override;
};

/// A bound is too small for even the mark that says what is missing.
class ANTIPODE_EXPORT LineageTooLarge : public AntipodeError {
 public:
  explicit LineageTooLarge(std::size_t max_bytes);
  ~LineageTooLarge() override;
};

}  // namespace antipode
