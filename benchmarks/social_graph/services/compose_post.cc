// Puts a post together from its six parts, stores it, and lets the regions know. Its edge is what an author calls.
#include <atomic>
#include <random>

#include "service.h"

namespace social_graph {
namespace {

constexpr int kParts = 6;

class ComposePostService final : public ComposePost::Service {
 public:
  explicit ComposePostService(const Process& process)
      : redis_("redis-us", process["redis"]),
        posts_(PostStorage::NewStub(process.To("post-storage"))),
        timeline_(UserTimeline::NewStub(process.To("user-timeline"))),
        news_("news", process["rabbitmq"], "geo.posts") {}

  grpc::Status Upload(grpc::ServerContext*, const Part* part, Nothing*) override {
    const std::string key = "compose:" + std::to_string(part->request_id());
    // Parts live longer than the request that makes them: else its answer would be that of a post that nobody stored.
    const std::vector<Reply> replies = redis_.Pipeline({{"HSET", key, part->name(), part->post().SerializeAsString()},
                                                        {"HINCRBY", key, "parts", "1"},
                                                        {"EXPIRE", key, std::to_string(2 * Call::limit.count())}});
    if (replies[1].number < kParts) return grpc::Status::OK;
    Post post;
    const std::vector<std::string> fields = redis_.Do({"HGETALL", key}).items;
    for (std::size_t index = 0; index + 1 < fields.size(); index += 2) {
      if (fields[index] != "parts") post.MergeFromString(fields[index + 1]);
    }
    post.set_request_id(part->request_id());
    return Publish(post);
  }

 private:
  grpc::Status Publish(const Post& post) {
    Nothing nothing;
    Call storing;
    if (grpc::Status status = posts_->StorePost(&storing, post, &nothing); !status.ok()) return status;
    Process::Observed(post.post_id(), "stored");

    Notification notification;
    notification.set_post_id(post.post_id());
    notification.set_user_id(post.creator().user_id());
    notification.set_timestamp_ms(post.timestamp_ms());
    for (const User& user : post.mentions()) notification.add_mentioned(user.user_id());
    news_.Publish("post", notification.SerializeAsString());

    TimelineEntry entry;
    entry.set_user_id(post.creator().user_id());
    entry.set_post_id(post.post_id());
    entry.set_timestamp_ms(post.timestamp_ms());
    Call listing;
    return timeline_->Write(&listing, entry, &nothing);
  }

  Redis redis_;
  const std::unique_ptr<PostStorage::Stub> posts_;
  const std::unique_ptr<UserTimeline::Stub> timeline_;
  Publisher news_;
};

/// What an author calls: it has the parts of a post made, at the same time.
class Author {
 public:
  explicit Author(const Process& process)
      : ids_(UniqueIds::NewStub(process.To("unique-id"))),
        texts_(Texts::NewStub(process.To("text"))),
        users_(Users::NewStub(process.To("user"))),
        media_(MediaFiles::NewStub(process.To("media"))),
        timeline_(UserTimeline::NewStub(process.To("user-timeline"))) {}

  grpc::Status Compose(const Fields& fields, std::string& answer) {
    Request id;
    id.set_request_id(next_++);
    TextRequest text;
    text.set_request_id(id.request_id());
    text.set_text(fields.at("text"));
    UserRequest user;
    user.set_request_id(id.request_id());
    user.mutable_user()->set_user_id(std::stoll(fields.at("user_id")));
    user.mutable_user()->set_username(fields.at("username"));
    MediaRequest media;
    media.set_request_id(id.request_id());
    for (int number = std::stoi(fields.at("media")); number > 0; --number) {
      Media* file = media.add_media();
      file->set_media_id(id.request_id() * 8 + number);
      file->set_media_type("png");
    }
    Call calls[4];
    PostId post;
    Nothing nothing[3];
    Together together;
    ids_->async()->Compose(&calls[0], &id, &post, together.Another());
    texts_->async()->Compose(&calls[1], &text, &nothing[0], together.Another());
    users_->async()->Compose(&calls[2], &user, &nothing[1], together.Another());
    media_->async()->Compose(&calls[3], &media, &nothing[2], together.Another());
    grpc::Status status = together.Wait();
    answer = Json(post);
    return status;
  }

  grpc::Status ReadOwn(const Fields& fields, std::string& answer) {
    TimelineRequest request;
    request.set_user_id(std::stoll(fields.at("user_id")));
    request.set_start(std::stoll(fields.at("start")));
    request.set_stop(std::stoll(fields.at("stop")));
    Timeline timeline;
    Call call;
    grpc::Status status = timeline_->Read(&call, request, &timeline);
    answer = Json(timeline);
    return status;
  }

 private:
  const std::unique_ptr<UniqueIds::Stub> ids_;
  const std::unique_ptr<Texts::Stub> texts_;
  const std::unique_ptr<Users::Stub> users_;
  const std::unique_ptr<MediaFiles::Stub> media_;
  const std::unique_ptr<UserTimeline::Stub> timeline_;
  /// Another process begins elsewhere.
  std::atomic<std::int64_t> next_{static_cast<std::int64_t>(std::random_device{}()) << 24};
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::ComposePostService service(process);
  social_graph::Author author(process);
  social_graph::Edge edge;
  edge.Post("/compose", [&](const auto& fields, std::string& answer) { return author.Compose(fields, answer); });
  edge.Get("/user-timeline", [&](const auto& fields, std::string& answer) { return author.ReadOwn(fields, answer); });
  return process.Serve(&service, &edge);
}
