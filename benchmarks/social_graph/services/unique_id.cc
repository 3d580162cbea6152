// Gives each post its id, which grows with time.
#include <chrono>

#include "service.h"

namespace social_graph {
namespace {

class UniqueIdService final : public UniqueIds::Service {
 public:
  explicit UniqueIdService(const Process& process)
      : machine_(std::stoll(process.Get("machine", "1"))), compose_(ComposePost::NewStub(process.To("compose-post"))) {}

  grpc::Status Compose(grpc::ServerContext*, const Request* request, PostId* id) override {
    const std::int64_t now_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    id->set_post_id(Next(now_ms));
    Part part;
    part.set_request_id(request->request_id());
    part.set_name("unique-id");
    part.mutable_post()->set_post_id(id->post_id());
    part.mutable_post()->set_timestamp_ms(now_ms);
    Call call;
    Nothing nothing;
    return compose_->Upload(&call, part, &nothing);
  }

 private:
  /// 40 bits of milliseconds, 12 of a counter within each, 11 of the machine.
  std::int64_t Next(std::int64_t now_ms) {
    const std::lock_guard guard(lock_);
    last_ = std::max(last_ + 1, (now_ms & 0xff'ffff'ffff) << 12);
    return last_ << 11 | machine_;
  }

  const std::int64_t machine_;
  const std::unique_ptr<ComposePost::Stub> compose_;
  std::mutex lock_;
  std::int64_t last_ = 0;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::UniqueIdService service(process);
  return process.Serve(&service);
}
