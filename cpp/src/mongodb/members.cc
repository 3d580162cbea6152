#include "mongodb/members.h"

namespace antipode::mongodb {
namespace {

/// How long a question may last.
constexpr double kAskS = 5;

}  // namespace

Pool& Members::At(const std::string& address) {
  const std::lock_guard guard(lock_);
  auto& pool = pools_[address];
  if (!pool) pool = std::make_unique<Pool>(target_.Of(address, kAskS));
  return *pool;
}

}  // namespace antipode::mongodb
