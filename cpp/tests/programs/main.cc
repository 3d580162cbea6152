// Random sessions over real servers: tests/programs/_cpp.py starts the servers, and reads the line.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "antipode/observer.h"
#include "play.h"

namespace {

/// Nothing is said of what is meant here.
class Silent final : public antipode::Observer {};

}  // namespace

/// programs STORE STEPS SEED and what the store's bench needs.
int main(int count, char** given) {
  using namespace antipode::programs;
  const std::map<std::string, Maker> makers{
#ifdef ANTIPODE_MONGODB
      {"mongodb", MakeMongoDb},
#endif
#ifdef ANTIPODE_MYSQL
      {"mysql", MakeMySql},       {"mariadb", MakeMySql},
#endif
#ifdef ANTIPODE_RABBITMQ
      {"rabbitmq", MakeRabbitMq},
#endif
#ifdef ANTIPODE_REDIS
      {"redis", MakeRedis},
#endif
  };
  const std::vector<std::string> words(given + 1, given + count);
  antipode::SetObserver(std::make_shared<Silent>());
  Line line;
  {
    const auto bench = makers.at(words.at(0))({words.begin() + 3, words.end()});
    line = Play(*bench, std::stoi(words.at(1)), static_cast<std::uint32_t>(std::stoul(words.at(2))));
  }
  const nlohmann::json said{
      {"steps", line.steps}, {"faults", line.faults}, {"alarms", line.alarms}, {"notes", line.notes}};
  std::cout << said << std::endl;
}
