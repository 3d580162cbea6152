// What the services share: how a process runs, whom it calls, and its connections to stores. Where the library is
// built in, `service.cc`, `stores.cc` and `edge.cc` wire it; nothing here depends on that.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "social_graph.grpc.pb.h"

struct _mongoc_collection_t;

namespace social_graph {

using Fields = std::map<std::string, std::string>;

/// HTTP for those outside: each request has fields, and is answered in JSON, or with what its status means in HTTP.
class Edge {
 public:
  using Handler = std::function<grpc::Status(const Fields& request, std::string& answer)>;
  Edge();
  ~Edge();
  void Post(const std::string& path, Handler handler);
  void Get(const std::string& path, Handler handler);
  /// Listens, on a port of the system's choice where none is given, which it returns.
  int Start(const std::string& host, int port);

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

/// A message as JSON, with the names that it has in the .proto.
std::string Json(const google::protobuf::Message& message);

/// One process. Its arguments are NAME=VALUE; it says where it listens in one line, and ends when its input does.
class Process {
 public:
  Process(int count, char** arguments);
  /// An argument. Throws where it is missing and there is no other value for it.
  std::string operator[](const std::string& name) const;
  std::string Get(const std::string& name, const std::string& otherwise) const;
  /// A channel to the service that an argument says the address of.
  std::shared_ptr<grpc::Channel> To(const std::string& service) const;
  /// Serves at `port`, where there are handlers, and HTTP at `http`. Returns the exit status.
  int Serve(grpc::Service* handlers, Edge* edge = nullptr) const;
  /// A line of the process's output: what somebody outside measures by.
  static void Say(const std::string& line);
  /// The time, of a clock that all processes of the machine share.
  static std::int64_t NowNs();
  /// Such a line of a post, with the time.
  static void Observed(std::int64_t post, const std::string& what);

 private:
  Fields arguments_;
};

/// A call to another service. It ends in time, whatever becomes of that one.
struct Call : grpc::ClientContext {
  Call() { set_deadline(std::chrono::system_clock::now() + limit); }
  static inline std::chrono::seconds limit{5};  ///< The argument `deadline`.
};

/// Calls that run at the same time:
///
///     texts_->async()->Compose(&call, &request, &nothing, together.Another());
class Together {
 public:
  std::function<void(grpc::Status)> Another();
  /// Waits for all of them: the first failure, if there is one.
  grpc::Status Wait();

 private:
  std::mutex lock_;
  std::condition_variable ended_;
  int running_ = 0;
  grpc::Status status_;
};

/// What Redis answers: a number, a text or a list.
struct Reply {
  std::int64_t number = 0;
  std::string text;
  std::vector<std::string> items;
};

/// One Redis server, over as many connections as are in use at once. Throws std::runtime_error for what failed.
class Redis {
 public:
  using Words = std::vector<std::string>;
  enum class Member { kPrimary, kReplica };
  Redis(std::string datastore, const std::string& address, Member member = Member::kPrimary);
  ~Redis();
  Reply Do(const Words& command);
  /// In one round trip.
  std::vector<Reply> Pipeline(const std::vector<Words>& commands);

 private:
  struct Connections;
  std::unique_ptr<Connections> connections_;
};

/// The posts in one member of a MongoDB replica set.
class Mongo {
 public:
  enum class Member { kPrimary, kSecondary };
  Mongo(const std::string& datastore, const std::string& address, Member member);
  ~Mongo();
  /// Runs calls of libmongoc on the collection.
  void Run(const std::function<void(_mongoc_collection_t*)>& calls);

 private:
  struct Clients;
  std::unique_ptr<Clients> clients_;
};

/// Publishes messages, each confirmed by the broker. Thread-safe.
class Publisher {
 public:
  Publisher(const std::string& datastore, std::string url, std::string exchange);
  ~Publisher();
  /// Throws std::runtime_error where the broker did not confirm it.
  void Publish(const std::string& key, const std::string& body);

 private:
  struct Channels;
  std::unique_ptr<Channels> channels_;
};

/// What became of a message.
struct Outcome {
  enum What { kDone, kLater, kNever };
  What what = kDone;
  std::string why;   ///< Of a message that comes later, or never.
  double eta_s = 0;  ///< When it may be worth it, as far as anybody knows.
};

/// Takes messages from a queue, and acknowledges each once it was handled.
///
/// One that is for later waits in another queue of the broker, each time twice as long, and comes back: it holds up
/// none of the others. After `kMostAttempts`, or where waiting cannot help, it goes to the queue QUEUE.dead, and the
/// log says so. It leaves its queue only once it is somewhere else: nothing is lost.
class Consumer {
 public:
  static constexpr int kMostAttempts = 20;
  /// Calls `handled`, at any time and from any thread; what it throws is for later. Meanwhile it gets other messages.
  using Handled = std::function<void(const Outcome&)>;
  using Handler = std::function<void(const std::string& body, const Handled& handled)>;
  /// At most `prefetch` messages are here at once.
  Consumer(const std::string& datastore, std::string url, std::string queue, int prefetch);
  ~Consumer();
  /// For as long as the process lives; a lost connection is replaced.
  void Run(const Handler& handler);

 private:
  struct Queue;
  std::unique_ptr<Queue> queue_;
};

}  // namespace social_graph
