#include "open_shim.h"

#include <functional>
#include <map>

namespace antipode::agent {
namespace {

using Opens = std::function<std::unique_ptr<OpenShim>(const Json&)>;

struct Kind {
  Opens open;
  std::function<Json(const std::string&, const Json&)> decide;
  Opens client = nullptr;
};

const std::map<std::string, Kind>& Kinds() {
  static const std::map<std::string, Kind> kinds{
#ifdef ANTIPODE_MONGODB
      {"mongodb", {OpenMongodb, DecideMongodb, OpenMongodbClient}},
#endif
#ifdef ANTIPODE_MYSQL
      {"mariadb", {OpenMysql, DecideMysql, OpenMysqlClient}},
      {"mysql", {OpenMysql, DecideMysql, OpenMysqlClient}},
#endif
#ifdef ANTIPODE_RABBITMQ
      {"rabbitmq", {OpenRabbitmq, DecideRabbitmq, OpenRabbitmqClient}},
#endif
#ifdef ANTIPODE_REDIS
      {"redis", {OpenRedis, DecideRedis, OpenRedisClient}},
#endif
  };
  return kinds;
}

const Kind& KindOf(const std::string& store) {
  const auto found = Kinds().find(store);
  if (found == Kinds().end()) throw Unsupported("C++ has no shim of '" + store + "' here");
  return found->second;
}

}  // namespace

std::vector<std::string> StoresHere() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : Kinds()) names.push_back(name);
  return names;
}

std::unique_ptr<OpenShim> OpenShimOf(const Json& given) {
  const Kind& kind = KindOf(given.at("store"));
  if (!given.value("client", false)) return kind.open(given);
  if (!kind.client) throw Unsupported("C++ has no instrumented client of this store");
  return kind.client(given);
}

Json Decide(const Json& request) { return KindOf(request.at("store")).decide(request.at("kind"), request.at("given")); }

}  // namespace antipode::agent
