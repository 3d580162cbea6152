// What each user has posted, the latest first.
#include "service.h"

namespace social_graph {
namespace {

std::string Key(std::int64_t user) { return "user-timeline:" + std::to_string(user); }

class UserTimelineService final : public UserTimeline::Service {
 public:
  explicit UserTimelineService(const Process& process)
      : redis_("redis-us", process["redis"]), posts_(PostStorage::NewStub(process.To("post-storage"))) {}

  grpc::Status Write(grpc::ServerContext*, const TimelineEntry* entry, Nothing*) override {
    redis_.Do(
        {"ZADD", Key(entry->user_id()), "NX", std::to_string(entry->timestamp_ms()), std::to_string(entry->post_id())});
    return grpc::Status::OK;
  }

  grpc::Status Read(grpc::ServerContext*, const TimelineRequest* request, Timeline* timeline) override {
    PostIds wanted;
    const Reply ids = redis_.Do(
        {"ZREVRANGE", Key(request->user_id()), std::to_string(request->start()), std::to_string(request->stop() - 1)});
    for (const std::string& id : ids.items) wanted.add_post_ids(std::stoll(id));
    *timeline->mutable_named() = wanted.post_ids();
    Posts found;
    Call call;
    grpc::Status status = posts_->ReadPosts(&call, wanted, &found);
    timeline->mutable_posts()->Swap(found.mutable_posts());
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
  social_graph::UserTimelineService service(process);
  return process.Serve(&service);
}
