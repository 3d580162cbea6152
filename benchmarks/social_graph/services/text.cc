// Finds who is mentioned in a text and what it links to, and shortens the links.
#include <regex>

#include "service.h"

namespace social_graph {
namespace {

std::vector<std::string> Found(const std::string& text, const std::regex& what) {
  return {std::sregex_token_iterator(text.begin(), text.end(), what), std::sregex_token_iterator()};
}

class TextService final : public Texts::Service {
 public:
  explicit TextService(const Process& process)
      : compose_(ComposePost::NewStub(process.To("compose-post"))),
        mentions_(UserMentions::NewStub(process.To("user-mention"))),
        urls_(UrlShortener::NewStub(process.To("url-shorten"))) {}

  grpc::Status Compose(grpc::ServerContext*, const TextRequest* request, Nothing* nothing) override {
    static const std::regex mention("@[A-Za-z0-9_-]+");
    static const std::regex url("https?://[A-Za-z0-9.:/_-]+");
    MentionRequest mentioned;
    mentioned.set_request_id(request->request_id());
    for (const std::string& name : Found(request->text(), mention)) mentioned.add_usernames(name.substr(1));
    UrlRequest linked;
    linked.set_request_id(request->request_id());
    for (const std::string& each : Found(request->text(), url)) linked.add_expanded(each);

    Call calls[2];
    Urls shortened;
    Nothing none;
    Together together;
    mentions_->async()->Compose(&calls[0], &mentioned, &none, together.Another());
    urls_->async()->Compose(&calls[1], &linked, &shortened, together.Another());
    if (grpc::Status status = together.Wait(); !status.ok()) return status;

    Part part;
    part.set_request_id(request->request_id());
    part.set_name("text");
    part.mutable_post()->set_text(Shortened(request->text(), shortened));
    Call call;
    return compose_->Upload(&call, part, nothing);
  }

 private:
  static std::string Shortened(std::string text, const Urls& urls) {
    for (const Url& url : urls.urls()) {
      const auto at = text.find(url.expanded());
      if (at != std::string::npos) text.replace(at, url.expanded().size(), url.shortened());
    }
    return text;
  }

  const std::unique_ptr<ComposePost::Stub> compose_;
  const std::unique_ptr<UserMentions::Stub> mentions_;
  const std::unique_ptr<UrlShortener::Stub> urls_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::TextService service(process);
  return process.Serve(&service);
}
