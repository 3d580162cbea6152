// Settings for one test, and what was before it again afterwards.
#pragma once

#include "antipode/propagation.h"
#include "antipode/settings.h"

namespace antipode {

class SettingsGuard {
 public:
  explicit SettingsGuard(const Settings& settings = {}) : before_(CurrentSettings()) {
    Configure(settings);
    ForgetServices();
  }
  ~SettingsGuard() { Configure(before_); }
  SettingsGuard(const SettingsGuard&) = delete;
  SettingsGuard& operator=(const SettingsGuard&) = delete;

 private:
  Settings before_;
};

}  // namespace antipode
