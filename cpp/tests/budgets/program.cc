// What the library adds to calls: tests/budgets/test_cpp.py gives a store's name and what its calls need.
#include <map>
#include <string>

#include "budgets/calls.h"

int main(int count, char** given) {
  using namespace antipode::budgets;
  const std::map<std::string, void (*)(const Words&)> stores{
      {"core", CountCore},
#ifdef ANTIPODE_MONGODB
      {"mongodb", CountMongoDb},
#endif
#ifdef ANTIPODE_MYSQL
      {"mysql", CountMySql},
#endif
#ifdef ANTIPODE_RABBITMQ
      {"rabbitmq", CountRabbitMq},
#endif
#ifdef ANTIPODE_REDIS
      {"redis", CountRedis},
#endif
  };
  const Words words(given + 1, given + count);
  stores.at(words.at(0))({words.begin() + 1, words.end()});
}
