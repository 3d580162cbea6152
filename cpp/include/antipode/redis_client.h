#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/redis.h"

struct redisContext;
struct redisReply;

namespace antipode::redis {

struct ANTIPODE_EXPORT ReplyDeleter {
  void operator()(redisReply* reply) const noexcept;
};
/// A reply of hiredis, or null: then the connection failed, and the context says how (`err`, `errstr`).
using OwnedReply = std::unique_ptr<redisReply, ReplyDeleter>;

/// An instrumented client: a connection of your own, whose commands are those of hiredis. What they write enters the
/// current scope with its position, what they read waits for what barriers demand. Nothing is stored with values.
///
///     redisContext* context = redisConnect("posts.internal", 6379);
///     antipode::redis::Client client(shim, context);           // a shim of the same server
///     client.Command("SET post:%s %s", "1", "hello");           // for redisCommand(context, ...)
///     client.AppendCommandArgv({"LPUSH", "feed", "1"});          // for redisAppendCommandArgv
///     antipode::redis::OwnedReply length = client.GetReply();  // for redisGetReply
///
/// Each call sends within the scope that is current in it; what is appended is sent by the first `GetReply`, and handed
/// out once all of it is answered. Used by one thread at a time, as the context.
class ANTIPODE_EXPORT Client {
 public:
  /// Asks the server who it is. `context` is connected, blocking, without unanswered commands, and outlives the client,
  /// by which alone it is used from now on. Throws ConfigurationError where it is none of these, or Error where the
  /// connection fails.
  Client(std::shared_ptr<Shim> shim, redisContext* context);
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  /// Sends one command and returns its reply, as `redisCommand` does with such a format. Throws UnmetError where a read
  /// is not shown what it must see, ConfigurationError where the server does not say what it shows, or Error where it
  /// cannot say so now; then nothing was sent of what was appended.
  OwnedReply Command(const char* format, ...);
  OwnedReply CommandArgv(const std::vector<std::string_view>& words);
  /// Adds a command to what the next `GetReply` sends. Throws ConfigurationError for `CLIENT REPLY`: a command without
  /// a reply has no position.
  void AppendCommand(const char* format, ...);
  void AppendCommandArgv(const std::vector<std::string_view>& words);
  /// The next reply, or message of a subscription. Throws as `Command`.
  OwnedReply GetReply();
  /// Connects again (`redisReconnect`), and begins as the constructor does; false where that fails.
  bool Reconnect();

 private:
  class Traffic;
  std::unique_ptr<Traffic> traffic_;
};

}  // namespace antipode::redis
