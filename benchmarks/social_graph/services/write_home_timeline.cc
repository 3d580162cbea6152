// Learns of a post, and puts it into the home timelines of those who follow its author or are mentioned in it.
#include <mongoc/mongoc.h>

#include <set>
#include <stdexcept>
#include <thread>

#include "service.h"

#ifdef ANTIPODE
#include "antipode/barrier.h"
#include "antipode/scope.h"
#endif

namespace social_graph {
namespace {

struct BsonDeleter {
  void operator()(_bson_t* document) const { bson_destroy(document); }
};

class Writer {
 public:
  explicit Writer(const Process& process)
      : barrier_(process.Get("barrier", "none")),
        patience_(std::stod(process.Get("patience", "5"))),
        redis_("redis-" + process["region"], process["redis"]),
        mongo_("posts", process["mongodb"],
               process["region"] == "us" ? Mongo::Member::kPrimary : Mongo::Member::kSecondary),
        graph_(SocialGraph::NewStub(process.To("social-graph"))) {}

  void Handle(const std::string& body, const Consumer::Handled& handled) {
    Notification notification;
    if (!notification.ParseFromString(body)) return handled({Outcome::kNever, "nobody can read it"});
    Process::Observed(notification.post_id(), "received");
#ifdef ANTIPODE
    if (barrier_ == "write") {
      antipode::BarrierOptions options;
      options.only = {{"posts"}};
      options.timeout = patience_;
      options.on_incomplete = antipode::Policy::kReport;  // `Waited` judges that.
      antipode::BarrierCallback(                          // Others are handled while this one waits.
          [=](const antipode::BarrierResult& result) { handled(Waited(notification, result)); }, options);
      return;
    }
#endif
    handled(Add(notification));
  }

 private:
#ifdef ANTIPODE
  /// Where waiting longer cannot help, because the lineage is incomplete or a store has lost its history, the post
  /// itself decides: it is here, or it is not.
  Outcome Waited(const Notification& notification, const antipode::BarrierResult& result) {
    for (const antipode::Outcome& outcome : result.outcomes) {
      if (!outcome.met() && antipode::IsPending(outcome.status)) {
        return {Outcome::kLater, Named(notification) + " is not visible yet", result.eta_s.value_or(0)};
      }
    }
    return Add(notification, /*required=*/!result.ok() || !result.incomplete.empty());
  }
#endif

  static std::string Named(const Notification& notification) {
    return "post " + std::to_string(notification.post_id());
  }

  /// Adds the post to timelines, as the paper's does whether it is here or not; here it can be required to be.
  Outcome Add(const Notification& notification, bool required = false) {
    try {
      const bool found = Find(notification.post_id());
      Process::Observed(notification.post_id(), found ? "found" : "missing");
      if (required && !found) return {Outcome::kLater, Named(notification) + " is not here, and nothing says when"};
      FanOut(notification);
      Process::Observed(notification.post_id(), "added");
      return {};
    } catch (const std::exception& error) {
      return {Outcome::kLater, Named(notification) + ": " + error.what()};
    }
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
#ifdef ANTIPODE
    if (barrier_ == "read") entries.push_back(LineageOf(notification));
#endif
    redis_.Pipeline(entries);
  }

#ifdef ANTIPODE
  /// For who reads timelines and waits there: what the post depends on, for longer than any store is late.
  static Redis::Words LineageOf(const Notification& notification) {
    return {"SET", "lineage:" + std::to_string(notification.post_id()), antipode::Serialize(), "EX", "3600"};
  }
#endif

  const std::string barrier_;
  const std::chrono::duration<double> patience_;
  Redis redis_;
  Mongo mongo_;
  const std::unique_ptr<SocialGraph::Stub> graph_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::Writer writer(process);
  for (int worker = std::stoi(process.Get("workers", "32")); worker > 0; --worker) {
    std::thread([&] {
      social_graph::Consumer consumer("news", process["rabbitmq"], "home-timeline-" + process["region"],
                                      std::stoi(process.Get("prefetch", "64")));
      consumer.Run([&](const auto& body, const auto& handled) { writer.Handle(body, handled); });
    }).detach();
  }
  return process.Serve(nullptr);
}
