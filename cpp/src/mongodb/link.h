// Connections to the servers of one URI: commands in, replies out.
#pragma once

#include <mongoc/mongoc.h>

#include <memory>
#include <mutex>
#include <string>

#include "antipode/mongodb.h"
#include "mongodb/bson.h"
#include "mongodb/position.h"

namespace antipode::mongodb {

/// No answer came. `sent` says whether the command may have been carried out all the same.
class NoAnswer : public Error {
 public:
  NoAnswer(const std::string& message, bool sent) : Error(message), sent_(sent) {}
  [[nodiscard]] bool sent() const noexcept { return sent_; }

 private:
  bool sent_;
};

/// Whether a write that a server refused with this code may have been done in part: it was interrupted.
bool Interrupted(int code);
/// Whether the server may answer later: it is not there, shuts down, or changes its state.
bool Passes(const Error& error);

struct DestroyUri {
  void operator()(mongoc_uri_t* uri) const { mongoc_uri_destroy(uri); }
};
using Uri = std::unique_ptr<mongoc_uri_t, DestroyUri>;

/// What of a URI matters here. Throws ConfigurationError.
struct Target {
  explicit Target(const std::string& text);
  /// The same for a client that gives up a server after so many seconds.
  [[nodiscard]] Uri Within(double timeout_s) const;
  /// The same for one of the member at an address alone. Throws ConfigurationError where it is no address.
  [[nodiscard]] Uri Of(const std::string& address, double timeout_s) const;

  Uri uri;
  bool direct;           ///< Whether there is one server.
  bool majority_writes;  ///< Whether a majority acknowledges writes.
  bool majority_reads;   ///< Whether reads show what a majority has.
};

/// A client that is used by one thread at a time.
class Link {
 public:
  explicit Link(mongoc_client_t* client) : client_(client) {}
  /// What the server answers; `anywhere` where the URI's preference decides which, else the primary. Throws Error.
  Doc Ask(const std::string& database, const Doc& command, bool anywhere);
  /// Where the server stands. Throws Error, ConfigurationError, or Unreachable where it has no data to read now.
  ServerState Hello(bool anywhere);
  [[nodiscard]] mongoc_client_t* get() const { return client_; }

 private:
  mongoc_client_t* client_;
};

/// The clients of one URI. Thread-safe.
class Pool {
 public:
  explicit Pool(const Uri& uri);
  ~Pool() { mongoc_client_pool_destroy(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// A client of the pool, for as long as this lives.
  class Lease {
   public:
    explicit Lease(Pool& pool) : pool_(pool.pool_), leased_(mongoc_client_pool_pop(pool_)), client_(leased_) {}
    ~Lease() { mongoc_client_pool_push(pool_, leased_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Link* operator->() { return &client_; }
    Link& operator*() { return client_; }

   private:
    mongoc_client_pool_t* pool_;
    mongoc_client_t* leased_;
    Link client_;
  };

 private:
  mongoc_client_pool_t* pool_;
};

/// The oplog, as a client asks for it.
class AskedOplog final : public Oplog {
 public:
  explicit AskedOplog(Link& client) : client_(client) {}
  std::optional<OpTime> FirstFrom(std::uint64_t version) override;

 private:
  Link& client_;
};

/// What a server in this state shows of writes.
Observation Shown(const ServerState& state, const std::set<WriteId>& writes, bool majority, LogHistory& history,
                  Link& client);

}  // namespace antipode::mongodb
