// Keeps a short URL for each long one.
#include <random>

#include "service.h"

namespace social_graph {
namespace {

std::string Random() {
  static constexpr char kCharacters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::mt19937_64 generator(std::random_device{}());
  std::uniform_int_distribution<std::size_t> position(0, sizeof(kCharacters) - 2);
  std::string random;
  for (int index = 0; index < 10; ++index) random += kCharacters[position(generator)];
  return random;
}

class UrlShortenService final : public UrlShortener::Service {
 public:
  explicit UrlShortenService(const Process& process)
      : compose_(ComposePost::NewStub(process.To("compose-post"))), redis_("redis-us", process["redis"]) {}

  grpc::Status Compose(grpc::ServerContext*, const UrlRequest* request, Urls* urls) override {
    std::vector<Redis::Words> kept;
    for (const std::string& expanded : request->expanded()) {
      Url* url = urls->add_urls();
      url->set_expanded(expanded);
      url->set_shortened("http://short-url/" + Random());
      kept.push_back({"SET", "url:" + url->shortened(), expanded});
    }
    redis_.Pipeline(kept);

    Part part;
    part.set_request_id(request->request_id());
    part.set_name("urls");
    *part.mutable_post()->mutable_urls() = urls->urls();
    Call call;
    Nothing nothing;
    return compose_->Upload(&call, part, &nothing);
  }

 private:
  const std::unique_ptr<ComposePost::Stub> compose_;
  Redis redis_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::UrlShortenService service(process);
  return process.Serve(&service);
}
