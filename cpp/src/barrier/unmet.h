// The error that stands for a barrier's result, and which goes first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "antipode/outcomes.h"

namespace antipode {

/// The first few outcomes in one line.
std::string Describe(const std::vector<Outcome>& outcomes);
/// The error of a result under the raising policy; null where it is ok.
std::unique_ptr<UnmetError> ErrorOf(const BarrierResult& result);
/// Throws it as what it is.
[[noreturn]] void Throw(const UnmetError& error);

}  // namespace antipode
