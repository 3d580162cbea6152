#include "mongodb/commands.h"

#include <set>

namespace antipode::mongodb {
namespace {

const std::set<std::string_view>& kWrites =
    *new std::set<std::string_view>{"bulkWrite",       "cloneCollectionAsCapped",
                                    "collMod",         "commitTransaction",
                                    "convertToCapped", "create",
                                    "createIndexes",   "delete",
                                    "deleteIndexes",   "drop",
                                    "dropDatabase",    "dropIndexes",
                                    "findAndModify",   "findandmodify",
                                    "insert",          "renameCollection",
                                    "update"};
const std::set<std::string_view>& kReads = *new std::set<std::string_view>{
    "aggregate", "collStats", "count",   "dataSize",        "dbHash",        "dbStats",     "distinct",  "explain",
    "find",      "geoSearch", "getMore", "listCollections", "listDatabases", "listIndexes", "mapReduce", "validate"};
const std::set<std::string_view>& kNeither = *new std::set<std::string_view>{"abortTransaction",
                                                                             "authenticate",
                                                                             "buildInfo",
                                                                             "buildinfo",
                                                                             "configureFailPoint",
                                                                             "connPoolStats",
                                                                             "connectionStatus",
                                                                             "currentOp",
                                                                             "endSessions",
                                                                             "features",
                                                                             "getCmdLineOpts",
                                                                             "getDefaultRWConcern",
                                                                             "getLog",
                                                                             "getParameter",
                                                                             "getnonce",
                                                                             "hello",
                                                                             "hostInfo",
                                                                             "isMaster",
                                                                             "ismaster",
                                                                             "killAllSessions",
                                                                             "killCursors",
                                                                             "killOp",
                                                                             "killSessions",
                                                                             "listCommands",
                                                                             "lockInfo",
                                                                             "logRotate",
                                                                             "logout",
                                                                             "ping",
                                                                             "planCacheListFilters",
                                                                             "profile",
                                                                             "refreshSessions",
                                                                             "replSetGetConfig",
                                                                             "replSetGetRBID",
                                                                             "replSetGetStatus",
                                                                             "replSetStepDown",
                                                                             "replSetSyncFrom",
                                                                             "rolesInfo",
                                                                             "saslContinue",
                                                                             "saslStart",
                                                                             "serverStatus",
                                                                             "setParameter",
                                                                             "startSession",
                                                                             "top",
                                                                             "usersInfo",
                                                                             "waitForFailPoint",
                                                                             "whatsmyuri"};
/// Writes that also read.
const std::set<std::string_view>& kReadingWrites =
    *new std::set<std::string_view>{"aggregate", "findAndModify", "findandmodify", "mapReduce"};
const std::set<std::string_view>& kTelling = *new std::set<std::string_view>{"delete", "insert", "update"};

/// Whether an aggregation stores its result: only the last stage may.
bool Stores(const bson_t& command) {
  const auto pipeline = DocAt(command, "pipeline");
  if (!pipeline) return false;
  Value each;
  bson_iter_init(&each.at, &pipeline->bson());
  bool stores = false;
  while (bson_iter_next(&each.at)) {
    const auto stage = DocIn(each);
    stores = stage && (bson_has_field(&stage->bson(), "$out") || bson_has_field(&stage->bson(), "$merge"));
  }
  return stores;
}

/// Whether a map-reduce writes its result to a collection.
bool MapsOut(const bson_t& command) { return At(command, "out") && !At(command, "out.inline"); }

}  // namespace

std::string NameOf(Effect effect) {
  switch (effect) {
    case Effect::kReads:
      return "read";
    case Effect::kWrites:
      return "write";
    case Effect::kNeither:
      return "neither";
    case Effect::kUnknown:
      break;
  }
  return "unknown";
}

Effect EffectOf(const bson_t& command) {
  Value first;
  if (!bson_iter_init(&first.at, &command) || !bson_iter_next(&first.at)) return Effect::kUnknown;
  const std::string_view name = bson_iter_key(&first.at);
  if ((name == "aggregate" && Stores(command)) || (name == "mapReduce" && MapsOut(command))) return Effect::kWrites;
  if (kReads.count(name) > 0) return Effect::kReads;
  if (kWrites.count(name) > 0) return Effect::kWrites;
  return kNeither.count(name) > 0 ? Effect::kNeither : Effect::kUnknown;
}

bool Reads(std::string_view name, Effect effect) {
  return effect == Effect::kReads || effect == Effect::kUnknown || kReadingWrites.count(name) > 0;
}

bool TellsTerm(std::string_view name) { return kTelling.count(name) > 0; }

}  // namespace antipode::mongodb
