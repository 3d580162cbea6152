// One connection over hiredis. Commands are sent when they are flushed: in one piece.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/redis.h"

namespace antipode::redis {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

/// There is no answer: the connection is gone, or the time is up.
class Lost final : public Error {
 public:
  using Error::Error;
};

/// What a server answered.
class Reply {
 public:
  explicit Reply(redisReply* reply) : owned_(reply), reply_(reply) {}

  /// The message where it is an error.
  [[nodiscard]] std::optional<std::string> error() const;
  /// Throws Error where it is one.
  const Reply& Checked() const;
  /// The bytes of a string or a status; none for nil.
  [[nodiscard]] std::optional<std::string> text() const;
  [[nodiscard]] bool nil() const { return reply_->type == REDIS_REPLY_NIL; }
  [[nodiscard]] std::size_t size() const { return reply_->type == REDIS_REPLY_ARRAY ? reply_->elements : 0; }
  /// An element, which lives as long as this one. Throws Error where there is none.
  [[nodiscard]] Reply at(std::size_t nth) const;
  /// The reply itself, which is the caller's to free.
  redisReply* Release() { return owned_.release(); }

 private:
  struct Free {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  Reply() = default;
  std::unique_ptr<redisReply, Free> owned_;
  const redisReply* reply_ = nullptr;
};

/// Used by one thread at a time, but for `Interrupt`.
class Connection {
 public:
  /// Connects, and asks for `INFO` alone: there are proxies that end the connection there, and users who may not.
  /// Throws Lost.
  Connection(const Address& address, double timeout_s);
  /// One of the application's, which stays its own, with its limits of time. Throws Lost.
  Connection(redisContext* context, double timeout_s);

  /// Why `INFO` may not be sent with commands; empty where it may.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// The name of the server's process, which cannot change while a connection lives.
  [[nodiscard]] const std::string& process() const { return process_; }
  /// Whether it can be used again: every answer was taken, and the server has not closed it.
  [[nodiscard]] bool Usable() const;

  void Queue(const std::vector<std::string>& command);
  /// The same of a command as it goes over the wire.
  void QueueFormatted(std::string_view command);
  /// Sends what is queued; its answers come in order, within so many seconds. Throws Lost.
  void Flush(double timeout_s);
  Reply Next();
  /// Sends what is queued, and takes the next answer, as hiredis does: within the limits of the context. Throws Lost.
  Reply Receive();
  /// Whether it was given up, or hiredis did.
  [[nodiscard]] bool lost() const { return lost_; }
  /// Sends one command and returns its answer.
  Reply Ask(const std::vector<std::string>& command, double timeout_s);
  /// Ends what another thread waits for on it.
  void Interrupt();

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  void AskWho(double timeout_s);
  [[noreturn]] void Lose(const std::string& cause);
  std::unique_ptr<redisContext, Free> owned_;
  redisContext* context_;
  std::string refusal_;
  std::string process_;
  double deadline_s_ = 0;
  int pending_ = 0;
  bool lost_ = false;
};

}  // namespace antipode::redis
