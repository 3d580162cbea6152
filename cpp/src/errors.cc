#include "antipode/errors.h"

namespace antipode {

AntipodeError::AntipodeError(std::string_view code, const std::string& message)
    : std::runtime_error(message), code_(code) {}
AntipodeError::~AntipodeError() = default;

ConfigurationError::ConfigurationError(const std::string& message) : AntipodeError("configuration", message) {}
ConfigurationError::~ConfigurationError() = default;
void ThrowConfigurationError(const std::string& message) { throw ConfigurationError(message); }

LineageDecodeError::LineageDecodeError(const DecodeFault& fault)
    : AntipodeError(fault.code, fault.message), offset_(fault.offset) {}
LineageDecodeError::~LineageDecodeError() = default;

StaleSnapshot::StaleSnapshot(const std::string& message) : AntipodeError("stale_snapshot", message) {}
StaleSnapshot::~StaleSnapshot() = default;

PromiseAbandoned::PromiseAbandoned(const std::string& id)
    : AntipodeError("promise_abandoned", "the promise " + id + " was abandoned: nothing may be written for it") {}
PromiseAbandoned::~PromiseAbandoned() = default;

LineageTooLarge::LineageTooLarge(std::size_t max_bytes)
    : AntipodeError("lineage_too_large", "max_bytes is " + std::to_string(max_bytes) +
                                             ", which is too small for the mark that says what is missing: 18 are "
                                             "needed") {}
LineageTooLarge::~LineageTooLarge() = default;

}  // namespace antipode
