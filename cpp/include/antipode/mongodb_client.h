#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "antipode/export.h"
#include "antipode/mongodb.h"

struct _bson_t;                ///< The client's `bson_t`,
struct _mongoc_client_t;       ///< `mongoc_client_t`,
struct _mongoc_client_pool_t;  ///< `mongoc_client_pool_t`
struct _mongoc_cursor_t;       ///< and `mongoc_cursor_t`.

namespace antipode::mongodb {

/// An instrumented client: one of your own, or a pool, whose calls are those of libmongoc. What they write enters the
/// current scope with its position, what they read waits for what barriers demand. Nothing is stored with values.
///
///     antipode::mongodb::Client client(shim, pool);               // a mongoc_client_pool_t* of yours
///     client.Call([&] { return mongoc_collection_insert_one(posts, &post, nullptr, nullptr, &error); });
///     while (client.Next(cursor, &document)) Show(*document);     // for mongoc_cursor_next(cursor, &document)
///
/// It observes each command as the client's monitoring of commands reports it, in the thread that calls, and checks
/// the member that will answer a read on separate connections, as the user of the shim's URI. Thread-safe.
class ANTIPODE_EXPORT Client {
 public:
  /// `shim` is of the same replica set. The client is no pool's, has no callbacks for commands, and outlives
  /// this; of a pool no client was popped yet. Keep this for as long as the pool: what writes afterwards has no
  /// position, which marks its scope, and no read waits. Throws ConfigurationError where it takes no callbacks.
  Client(std::shared_ptr<Shim> shim, _mongoc_client_t* client);
  Client(std::shared_ptr<Shim> shim, _mongoc_client_pool_t* pool);
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  /// One call of libmongoc, within the scope that is current; returns what it does. At its end what it wrote enters the
  /// scope, over all its attempts. Throws UnmetError where a read is not shown what it must see, StaleSnapshot where
  /// its transaction is too old for it, ConfigurationError where its server does not say what it shows, or Error where
  /// it cannot say so now. What such a call answered must not be used; a change stream is opened again, from the last
  /// token that was. A command that also writes was sent all the same, and is in the scope.
  ///
  /// The callback of `mongoc_client_session_with_transaction` makes separate calls.
  template <typename Function>
  auto Call(Function&& function) {
    Running running(*traffic_);
    if constexpr (std::is_void_v<decltype(function())>) {
      std::forward<Function>(function)();
      running.End();
    } else {
      auto result = std::forward<Function>(function)();
      running.End();
      return result;
    }
  }

  /// Advances a cursor, for `mongoc_cursor_next`. Throws as `Call`: then the cursor can only be destroyed, and throws
  /// that for ever.
  bool Next(_mongoc_cursor_t* cursor, const _bson_t** document);

 private:
  class Traffic;
  struct Ear;
  /// A call that runs in this thread.
  class ANTIPODE_EXPORT Running {
   public:
    explicit Running(Traffic& traffic);
    /// Records what it wrote, where it ended by an exception.
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    /// Records what it wrote. Throws as `Call`.
    void End();

   private:
    friend class Client;
    struct State;
    std::unique_ptr<State> state_;
  };
  std::shared_ptr<Traffic> traffic_;
};

}  // namespace antipode::mongodb
