// Which stores this process has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "antipode/shim.h"

namespace antipode::registry {

/// The stores of a datastore, in the order of their registration.
std::vector<std::shared_ptr<Store>> StoresOf(const std::string& datastore);
/// The names of all datastores with a store, sorted.
std::vector<std::string> Registered();
/// Whether there is any datastore whose writes this process can wait for.
bool WaitsForAny();
/// Where to wait for now: at the replica where there is one, else the primary; null where none can check. Throws
/// ConfigurationError where two are alike.
std::shared_ptr<Store> Looking(const std::string& datastore);

/// What checks where the clients of a store read; null where barriers check elsewhere.
std::shared_ptr<Watcher> SharedWatcher(Store& store);

}  // namespace antipode::registry
