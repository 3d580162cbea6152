// Finds the ids of users who are mentioned by name; names of nobody are left out.
#include "service.h"

namespace social_graph {
namespace {

class UserMentionService final : public UserMentions::Service {
 public:
  explicit UserMentionService(const Process& process)
      : compose_(ComposePost::NewStub(process.To("compose-post"))), redis_("redis-us", process["redis"]) {}

  grpc::Status Compose(grpc::ServerContext*, const MentionRequest* request, Nothing* nothing) override {
    Part part;
    part.set_request_id(request->request_id());
    part.set_name("user-mentions");
    std::vector<Redis::Words> lookups;
    for (const std::string& name : request->usernames()) lookups.push_back({"HGET", "user-ids", name});
    const std::vector<Reply> found = redis_.Pipeline(lookups);
    for (std::size_t index = 0; index < found.size(); ++index) {
      if (found[index].text.empty()) continue;
      User* user = part.mutable_post()->add_mentions();
      user->set_user_id(std::stoll(found[index].text));
      user->set_username(request->usernames(static_cast<int>(index)));
    }
    Call call;
    return compose_->Upload(&call, part, nothing);
  }

 private:
  const std::unique_ptr<ComposePost::Stub> compose_;
  Redis redis_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::UserMentionService service(process);
  return process.Serve(&service);
}
