// What those whom a user follows have posted, in the region where this runs. Its edge is what a reader calls.
#include "service.h"

#ifdef ANTIPODE
#include "antipode/barrier.h"
#include "antipode/scope.h"
#endif

namespace social_graph {
namespace {

class HomeTimelineService final : public HomeTimeline::Service {
 public:
  explicit HomeTimelineService(const Process& process)
      : redis_("redis-" + process["region"], process["redis"]),
        posts_(PostStorage::NewStub(process.To("post-storage"))) {
#ifdef ANTIPODE
    if (process.Get("barrier", "none") == "read") {  // The store whose posts are waited for.
      mongo_ = std::make_unique<Mongo>("posts", process["mongodb"], Mongo::Member::kSecondary);
    }
#endif
  }

  grpc::Status Read(grpc::ServerContext*, const TimelineRequest* request, Timeline* timeline) override {
    return Show(*request, *timeline);
  }

  grpc::Status Show(const TimelineRequest& request, Timeline& timeline) {
    PostIds wanted;
    const Reply ids = redis_.Do({"ZREVRANGE", "home-timeline:" + std::to_string(request.user_id()),
                                 std::to_string(request.start()), std::to_string(request.stop() - 1)});
    for (const std::string& id : ids.items) wanted.add_post_ids(std::stoll(id));
    *timeline.mutable_named() = wanted.post_ids();
#ifdef ANTIPODE
    if (mongo_ != nullptr && !ids.items.empty()) AwaitPosts(ids.items);
#endif
    Posts found;
    Call call;
    grpc::Status status = posts_->ReadPosts(&call, wanted, &found);
    timeline.mutable_posts()->Swap(found.mutable_posts());
    return status;
  }

 private:
#ifdef ANTIPODE
  /// Merges what each post depends on, and waits until it is visible where posts are read.
  void AwaitPosts(const std::vector<std::string>& posts) {
    Redis::Words keys = {"MGET"};
    for (const std::string& post : posts) keys.push_back("lineage:" + post);
    for (const std::string& lineage : redis_.Do(keys).items) {
      if (!lineage.empty()) antipode::Transfer(lineage);
    }
    antipode::BarrierOptions options;
    options.only = {{"posts"}};
    options.timeout = std::chrono::seconds(4);
    antipode::Barrier(options);
  }

  std::unique_ptr<Mongo> mongo_;
#endif
  Redis redis_;
  const std::unique_ptr<PostStorage::Stub> posts_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::HomeTimelineService service(process);
  social_graph::Edge edge;
  edge.Get("/home-timeline", [&](const social_graph::Fields& fields, std::string& answer) {
    social_graph::TimelineRequest request;
    request.set_user_id(std::stoll(fields.at("user_id")));
    request.set_start(std::stoll(fields.at("start")));
    request.set_stop(std::stoll(fields.at("stop")));
    social_graph::Timeline timeline;
    grpc::Status status = service.Show(request, timeline);
    answer = social_graph::Json(timeline);
    return status;
  });
  return process.Serve(&service, &edge);
}
