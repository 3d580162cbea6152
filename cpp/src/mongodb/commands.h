// What commands do, by their names: tables, so that no result depends on a question to the server.
#pragma once

#include <string>

#include "mongodb/bson.h"

namespace antipode::mongodb {

enum class Effect { kReads, kWrites, kNeither, kUnknown };
std::string NameOf(Effect effect);

/// What a command does.
Effect EffectOf(const bson_t& command);

}  // namespace antipode::mongodb
