#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/export.h"

namespace antipode {

/// Learns what the library counts and warns of, from whatever thread it happens in. It must not throw.
class ANTIPODE_EXPORT Observer {
 public:
  virtual ~Observer();
  /// Something was counted: a stable name of the metrics' reference, and the datastore or service that it is about.
  virtual void Counted(std::string_view metric, std::string_view subject) noexcept;
  /// A read was answered although its request depends on more of this datastore; `code` is that of the error that a
  /// barrier would have thrown. On the thread that reads: an event for its span.
  virtual void ServedStale(std::string_view datastore, std::string_view code) noexcept;
  /// Something that a person should know; said once for each subject and cause.
  virtual void Warned(std::string_view message) noexcept;
};

/// Lets `observer` learn what happens from now on; null: warnings go to standard error, as they do by default.
ANTIPODE_EXPORT void SetObserver(std::shared_ptr<Observer> observer);

/// All counts of this process since it started, by metric and subject.
ANTIPODE_EXPORT std::map<std::pair<std::string, std::string>, std::uint64_t> Metrics();

/// For shims: counts something of a datastore or service.
ANTIPODE_EXPORT void Count(std::string_view metric, std::string_view subject = {});
/// For shims: warns, once for each metric, subject and site.
ANTIPODE_EXPORT void WarnOnce(std::string_view metric, std::string_view subject, std::string_view site,
                              const std::string& message);

}  // namespace antipode
