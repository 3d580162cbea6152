// Learns of a post, and puts it into the home timelines of those who follow its author or are mentioned in it.
#include <mongoc/mongoc.h>

#include <iostream>
#include <set>
#include <stdexcept>
#include <thread>

#include "service.h"

#ifdef ANTIPODE
#include "antipode/barrier.h"
#endif

namespace social_graph {
namespace {

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct BsonDeleter {
  void operator()(_bson_t* document) const { bson_destroy(document); }
};

class Writer {
 public:
  explicit Writer(const Process& process)
      : barrier_(process.Get("barrier", "none") == "write"),
        redis_("redis-" + process["region"], process["redis"]),
        mongo_("posts", process["mongodb"],
               process["region"] == "us" ? Mongo::Member::kPrimary : Mongo::Member::kSecondary),
        graph_(SocialGraph::NewStub(process.To("social-graph"))) {}

  void Handle(const std::string& body, const std::function<void(bool)>& handled) {
    Notification notification;
    if (!notification.ParseFromString(body)) return handled(true);  // Nobody can read it.
    Observed(notification, "received");
#ifdef ANTIPODE
    if (barrier_) {
      antipode::BarrierOptions options;
      options.only = {{"posts"}};
      options.timeout = std::chrono::seconds(20);
      antipode::BarrierCallback(  // Others are handled while this one waits.
          [=](const antipode::BarrierResult& result) { handled(result.ok() && Add(notification)); }, options);
      return;
    }
#endif
    handled(Add(notification));
  }

 private:
  /// Adds the post to timelines, whether it is here or not, as the paper's does. Whether that was done.
  bool Add(const Notification& notification) {
    try {
      const bool found = Find(notification.post_id());
      FanOut(notification);
      Observed(notification, found ? "found" : "missing");
      return true;
    } catch (const std::exception& error) {
      std::cerr << "post " << notification.post_id() << ": " << error.what() << std::endl;
      return false;
    }
  }

  /// What those who measure see, on this process's output.
  static void Observed(const Notification& notification, const std::string& what) {
    Process::Say("{\"post\": " + std::to_string(notification.post_id()) + ", \"at_ns\": " + std::to_string(NowNs()) +
                 ", \"post_was\": \"" + what + "\"}");
  }

  /// Whether the post is here.
  bool Find(std::int64_t post) {
    const std::unique_ptr<_bson_t, BsonDeleter> query(BCON_NEW("_id", BCON_INT64(post)));
    std::int64_t count = 0;
    bson_error_t error{};
    mongo_.Run([&](mongoc_collection_t* posts) {
      count = mongoc_collection_count_documents(posts, query.get(), nullptr, nullptr, nullptr, &error);
    });
    if (count < 0) throw std::runtime_error(error.message);
    return count > 0;
  }

  void FanOut(const Notification& notification) {
    UserId author;
    author.set_user_id(notification.user_id());
    UserIds followers;
    Call call;
    if (const grpc::Status status = graph_->GetFollowers(&call, author, &followers); !status.ok()) {
      throw std::runtime_error("the followers: " + status.error_message());
    }
    std::set<std::int64_t> readers(followers.user_ids().begin(), followers.user_ids().end());
    readers.insert(notification.mentioned().begin(), notification.mentioned().end());
    std::vector<Redis::Words> entries;
    for (const std::int64_t reader : readers) {  // NX: a message that comes twice adds nothing.
      entries.push_back({"ZADD", "home-timeline:" + std::to_string(reader), "NX",
                         std::to_string(notification.timestamp_ms()), std::to_string(notification.post_id())});
    }
    redis_.Pipeline(entries);
  }

  const bool barrier_;
  Redis redis_;
  Mongo mongo_;
  const std::unique_ptr<SocialGraph::Stub> graph_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::Writer writer(process);
  for (int worker = std::stoi(process.Get("workers", "4")); worker > 0; --worker) {
    std::thread([&] {
      social_graph::Consumer consumer("news", process["rabbitmq"], "home-timeline-" + process["region"],
                                      std::stoi(process.Get("prefetch", "64")));
      consumer.Run([&](const auto& body, const auto& handled) { writer.Handle(body, handled); });
    }).detach();
  }
  return process.Serve(nullptr);
}
