// What commands do, by their names: tables, so that no result depends on a question to the server.
#pragma once

#include <string>
#include <string_view>

#include "mongodb/bson.h"

namespace antipode::mongodb {

enum class Effect { kReads, kWrites, kNeither, kUnknown };
std::string NameOf(Effect effect);

/// What a command does.
Effect EffectOf(const bson_t& command);
/// Whether a command of this name and effect reads data, whatever else it does.
bool Reads(std::string_view name, Effect effect);
/// Whether the reply to a write of this name has the term of its position.
bool TellsTerm(std::string_view name);

}  // namespace antipode::mongodb
