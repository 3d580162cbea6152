// Who follows whom: a datastore of its own, in the Redis of us. It is changed there; eu reads a replica.
#include "service.h"

namespace social_graph {
namespace {

std::string Followers(std::int64_t user) { return std::to_string(user) + ":followers"; }
std::string Followees(std::int64_t user) { return std::to_string(user) + ":followees"; }

class SocialGraphService final : public SocialGraph::Service {
 public:
  explicit SocialGraphService(const Process& process)
      : redis_("graph", process["redis"],
               process["region"] == "us" ? Redis::Member::kPrimary : Redis::Member::kReplica) {}

  grpc::Status GetFollowers(grpc::ServerContext*, const UserId* user, UserIds* followers) override {
    for (const std::string& each : redis_.Do({"SMEMBERS", Followers(user->user_id())}).items) {
      followers->add_user_ids(std::stoll(each));
    }
    return grpc::Status::OK;
  }

  grpc::Status AddFollow(grpc::ServerContext*, const Follow* follow, Nothing*) override {
    return Change("SADD", *follow);
  }

  grpc::Status RemoveFollow(grpc::ServerContext*, const Follow* follow, Nothing*) override {
    return Change("SREM", *follow);
  }

 private:
  grpc::Status Change(const std::string& command, const Follow& follow) {
    redis_.Pipeline({{command, Followers(follow.followee()), std::to_string(follow.follower())},
                     {command, Followees(follow.follower()), std::to_string(follow.followee())}});
    return grpc::Status::OK;
  }

  Redis redis_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::SocialGraphService service(process);
  return process.Serve(&service);
}
