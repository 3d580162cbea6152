// What a session cookie says before it is signed (specification, sessions). Pure: nothing is signed or set here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/clock.h"
#include "antipode/lineage.h"
#include "antipode/propagation.h"
#include "antipode/settings.h"

namespace antipode::session {

/// What the requests of one second added.
struct Part {
  std::int64_t second;  ///< The Unix second in which they did.
  Lineage lineage;      ///< Without what a later part says as well.
};

/// The parts of a content, as received: nobody wrote in the future. None where it is no content; `*why` then says it.
std::optional<std::vector<Part>> PartsOf(std::string_view content, const Clock& clock, const Settings& settings,
                                         std::string* why);

/// Those that are not older than `max_age_s`.
std::vector<Part> Living(const std::vector<Part>& parts, std::int64_t now_s, double max_age_s);

/// What was added, without what is everywhere by its hour, open branches and notes.
Lineage WorthCarrying(const Lineage& added, std::int64_t now_s, double max_age_s);

/// The content of parts in at most so many bytes, with a mark for what is lost. Parts become one before anything is:
/// of two, with the second of the newer. Throws LineageTooLarge.
std::string ContentOf(const std::vector<Part>& parts, std::size_t room, const Settings& settings);

/// The values of the cookies of a name, in the order in which they came.
std::vector<std::string_view> CookiesOf(const Headers& headers, std::string_view name);

/// The tokens that came, in their order.
std::vector<std::string_view> TokensOf(const Headers& headers);

/// The `Cache-Control` of a response that sets a cookie; none where it must not: a shared cache that keeps it would
/// give one user's cookie to others.
std::optional<std::string> Caching(int status, const Headers& headers);

}  // namespace antipode::session
