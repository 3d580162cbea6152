#include "redis/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "antipode/clock.h"
#include "antipode/sockets.h"
#include "redis/position.h"

namespace antipode::redis {
namespace {

timeval TimeOf(double seconds) {
  const double positive = std::max(seconds, 0.001);
  const double whole = std::floor(positive);
  return {static_cast<time_t>(whole), static_cast<suseconds_t>((positive - whole) * 1e6)};
}

/// A context that is connected, or says why not. hiredis gives up where a signal comes meanwhile.
redisContext* Connected(const Address& address, double timeout_s) {
  const double deadline_s = SystemClock().Now() + timeout_s;
  while (true) {
    errno = 0;
    redisContext* context =
        redisConnectWithTimeout(address.host.c_str(), address.port, TimeOf(deadline_s - SystemClock().Now()));
    const bool interrupted = context != nullptr && context->err == REDIS_ERR_IO && errno == EINTR;
    if (!interrupted || SystemClock().Now() >= deadline_s) return context;
    redisFree(context);
  }
}

/// As long as it lives, a context returns where it would block, whoever opened it.
class Unblocked {
 public:
  explicit Unblocked(redisContext& context)
      : context_(context), before_(context.flags), status_(fcntl(context.fd, F_GETFL)) {
    context_.flags &= ~REDIS_BLOCK;
    fcntl(context_.fd, F_SETFL, status_ | O_NONBLOCK);
  }
  ~Unblocked() {
    fcntl(context_.fd, F_SETFL, status_);
    context_.flags |= before_ & REDIS_BLOCK;
  }
  Unblocked(const Unblocked&) = delete;
  Unblocked& operator=(const Unblocked&) = delete;

 private:
  redisContext& context_;
  int before_;
  int status_;
};

std::string ProcessIn(const std::string& info) {
  static constexpr std::string_view kRunId = "run_id:";
  const std::size_t at = info.find(kRunId);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kRunId.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

}  // namespace

Error::~Error() = default;

std::optional<std::string> Reply::error() const {
  if (reply_->type != REDIS_REPLY_ERROR) return std::nullopt;
  return std::string(reply_->str, reply_->len);
}

const Reply& Reply::Checked() const {
  if (const auto message = error()) throw Error(*message);
  return *this;
}

std::optional<std::string> Reply::text() const {
  if (reply_->type != REDIS_REPLY_STRING && reply_->type != REDIS_REPLY_STATUS) return std::nullopt;
  return std::string(reply_->str, reply_->len);
}

Reply Reply::at(std::size_t nth) const {
  if (nth >= size()) throw Error("the server's answer has no element " + std::to_string(nth));
  Reply element;
  element.reply_ = reply_->element[nth];
  return element;
}

Connection::Connection(const Address& address, double timeout_s)
    : owned_(Connected(address, timeout_s)), context_(owned_.get()) {
  const std::string where = address.host + ":" + std::to_string(address.port);
  if (!context_) throw Lost("no memory for a connection to " + where);
  if (context_->err != 0) throw Lost("no connection to " + where + ": " + context_->errstr);
  AskWho(timeout_s);
}

Connection::Connection(redisContext* context, double timeout_s) : context_(context) { AskWho(timeout_s); }

void Connection::AskWho(double timeout_s) {
  const Reply info = Ask({"INFO", "server"}, timeout_s);
  if (const auto error = info.error()) {
    // One that passes is none of this question alone.
    if (!IsPassing(*error)) refusal_ = *error;
  } else {
    process_ = ProcessIn(info.text().value_or(""));
  }
}

bool Connection::Usable() const {
  if (lost_ || pending_ != 0) return false;
  pollfd idle{context_->fd, POLLIN, 0};
  return poll(&idle, 1, 0) == 0;
}

void Connection::Queue(const std::vector<std::string>& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const std::string& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_, static_cast<int>(command.size()), words.data(), sizes.data()) != REDIS_OK) {
    Lose(context_->errstr);
  }
  ++pending_;
}

void Connection::QueueFormatted(std::string_view command) {
  if (redisAppendFormattedCommand(context_, command.data(), command.size()) != REDIS_OK) Lose(context_->errstr);
  ++pending_;
}

void Connection::Flush(double timeout_s) {
  deadline_s_ = SystemClock().Now() + timeout_s;
  const WithoutSigpipe quiet;
  const Unblocked unblocked(*context_);
  while (true) {
    int done = 0;
    if (redisBufferWrite(context_, &done) != REDIS_OK) Lose(context_->errstr);
    if (done != 0) return;
    if (AwaitSocket(context_->fd, POLLOUT, deadline_s_) == 0) Lose("the server did not take the commands in time");
  }
}

Reply Connection::Next() {
  void* reply = nullptr;
  while (true) {
    if (redisGetReplyFromReader(context_, &reply) != REDIS_OK) Lose(context_->errstr);
    if (reply != nullptr) break;
    if (AwaitSocket(context_->fd, POLLIN, deadline_s_) == 0) Lose("the server did not answer in time");
    const Unblocked unblocked(*context_);
    if (redisBufferRead(context_) != REDIS_OK) Lose(context_->errstr);
  }
  --pending_;
  return Reply(static_cast<redisReply*>(reply));
}

Reply Connection::Receive() {
  const WithoutSigpipe quiet;
  void* reply = nullptr;
  if (redisGetReply(context_, &reply) != REDIS_OK) Lose(context_->errstr);
  --pending_;
  return Reply(static_cast<redisReply*>(reply));
}

Reply Connection::Ask(const std::vector<std::string>& command, double timeout_s) {
  Queue(command);
  Flush(timeout_s);
  return Next();
}

void Connection::Interrupt() { shutdown(context_->fd, SHUT_RDWR); }

void Connection::Lose(const std::string& cause) {
  lost_ = true;
  if (context_->err == 0) {
    // Its next answer would be that to another question: whoever uses it hears of that.
    context_->err = REDIS_ERR_OTHER;
    context_->errstr[cause.copy(context_->errstr, sizeof context_->errstr - 1)] = '\0';
  }
  throw Lost(cause);
}

}  // namespace antipode::redis
