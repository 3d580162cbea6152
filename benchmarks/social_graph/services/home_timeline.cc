// What those whom a user follows have posted, in the region where this runs. Its edge is what a reader calls.
#include "service.h"

namespace social_graph {
namespace {

class HomeTimelineService final : public HomeTimeline::Service {
 public:
  explicit HomeTimelineService(const Process& process)
      : redis_("redis-" + process["region"], process["redis"]),
        posts_(PostStorage::NewStub(process.To("post-storage"))) {}

  grpc::Status Read(grpc::ServerContext*, const TimelineRequest* request, Timeline* timeline) override {
    return Show(*request, *timeline);
  }

  grpc::Status Show(const TimelineRequest& request, Timeline& timeline) {
    PostIds wanted;
    const Reply ids = redis_.Do({"ZREVRANGE", "home-timeline:" + std::to_string(request.user_id()),
                                 std::to_string(request.start()), std::to_string(request.stop() - 1)});
    for (const std::string& id : ids.items) wanted.add_post_ids(std::stoll(id));
    *timeline.mutable_named() = wanted.post_ids();
    Posts found;
    Call call;
    grpc::Status status = posts_->ReadPosts(&call, wanted, &found);
    timeline.mutable_posts()->Swap(found.mutable_posts());
    return status;
  }

 private:
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
