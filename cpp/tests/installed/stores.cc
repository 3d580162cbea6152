// Every shim of a store that the package has, found as a component of
// it. Where no server is, each says so.
#include <cstdio>
#include <functional>

#ifdef WITH_MONGODB
#include "antipode/errors.h"
#include "antipode/mongodb.h"
#include "antipode/mongodb_client.h"
#endif
#ifdef WITH_MYSQL
#include "antipode/errors.h"
#include "antipode/mysql.h"
#include "antipode/mysql_client.h"
#endif
#ifdef WITH_RABBITMQ
#include "antipode/errors.h"
#include "antipode/rabbitmq.h"
#include "antipode/rabbitmq_client.h"
#endif
#ifdef WITH_REDIS
#include "antipode/errors.h"
#include "antipode/redis.h"
#include "antipode/redis_client.h"
#endif

namespace {

template <typename Error>
bool Fails(const char* store, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    std::printf("%s: %s\n", store, error.what());
    return true;
  }
  return false;
}

}  // namespace

int main() {
  bool as_said = true;
#ifdef WITH_MONGODB
  as_said = as_said && Fails<antipode::mongodb::Error>("mongodb", [] {
              const auto shim = antipode::mongodb::Shim::Open(
                  "posts",
                  "mongodb://127.0.0.1:1/"
                  "?directConnection=true&serverSelectionTimeoutMS=100",
                  {"app", "posts"});
              shim->Write("1", "hello");
            });
  as_said = as_said &&
            Fails<antipode::ConfigurationError>("mongodb client", [] {
              const auto shim = antipode::mongodb::Shim::Open(
                  "posts", "mongodb://127.0.0.1:1", {"app", "posts"});
              antipode::mongodb::Client(
                  shim, static_cast<_mongoc_client_t*>(nullptr))
                  .Call([] {});
            });
#endif
#ifdef WITH_MYSQL
  as_said = as_said && Fails<antipode::mysql::Error>("mysql", [] {
              antipode::mysql::Shim::Open("posts", "127.0.0.1", 1,
                                          {"app", "secret", "blog"})
                  ->Write("1", "hello");
            });
  as_said = as_said &&
            Fails<antipode::ConfigurationError>("mysql client", [] {
              const auto shim = antipode::mysql::Shim::Open(
                  "posts", "127.0.0.1", 1, {"app", "secret", "blog"});
              antipode::mysql::Client(shim, nullptr).Query("SELECT 1");
            });
#endif
#ifdef WITH_RABBITMQ
  as_said = as_said && Fails<antipode::rabbitmq::Error>("rabbitmq", [] {
              antipode::rabbitmq::Shim::Open(
                  "news", "amqp://127.0.0.1:1", {"posts", "inbox"})
                  ->Write("eu", "1");
            });
  as_said = as_said &&
            Fails<antipode::ConfigurationError>("rabbitmq client", [] {
              const auto shim = antipode::rabbitmq::Shim::Open(
                  "news", "amqp://127.0.0.1:1", {"posts", "inbox"});
              antipode::rabbitmq::Client(shim, nullptr, 1).Confirm();
            });
#endif
#ifdef WITH_REDIS
  as_said = as_said && Fails<antipode::redis::Error>("redis", [] {
              antipode::redis::Shim::Open("profiles", "127.0.0.1", 1)
                  ->Write("1", "hello");
            });
  as_said = as_said &&
            Fails<antipode::ConfigurationError>("redis client", [] {
              const auto shim = antipode::redis::Shim::Open(
                  "profiles", "127.0.0.1", 1);
              antipode::redis::Client(shim, nullptr)
                  .Command("SET %s %s", "1", "hello");
            });
#endif
  return as_said ? 0 : 1;
}
