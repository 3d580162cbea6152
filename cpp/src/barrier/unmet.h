// The error that stands for a barrier's result, and which goes first.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/outcomes.h"

namespace antipode {

/// The first few outcomes in one line.
std::string Describe(const std::vector<Outcome>& outcomes);
/// The error of a result under the raising policy; null where it is ok.
std::unique_ptr<UnmetError> ErrorOf(const BarrierResult& result);
/// Logs what a barrier or read did not get: each datastore and outcome once a minute at most.
void TellOfUnmet(std::string_view what, const UnmetError& error);
/// Ends a read with it, logged.
[[noreturn]] void Refuse(const UnmetError& error);
/// Throws it as what it is.
[[noreturn]] void Throw(const UnmetError& error);

}  // namespace antipode
