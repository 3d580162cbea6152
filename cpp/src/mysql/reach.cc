#include "mysql/reach.h"

#include "antipode/errors.h"

namespace antipode::mysql {

bool Reach::Knows(const Facts& facts) {
  if (stated_) return true;
  const std::lock_guard guard(lock_);
  if (proxied_.empty()) proxied_ = facts.proxied;
  return proxied_.empty();
}

void Reach::Require(const Facts& facts, const std::string& datastore) {
  facts.Require(datastore);
  if (!Knows(facts)) throw ConfigurationError("reads of '" + datastore + "' cannot wait: " + proxied_);
}

}  // namespace antipode::mysql
