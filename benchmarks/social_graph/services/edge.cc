#include <google/protobuf/util/json_util.h>
#include <httplib.h>

#include <stdexcept>
#include <thread>

#include "service.h"

#ifdef ANTIPODE
#include "antipode/propagation.h"
#include "antipode/scope.h"
#elif defined(OPENTELEMETRY)
#include "propagation.h"
#endif

namespace social_graph {
namespace {

/// Requests that are handled at once.
constexpr std::size_t kThreads = 512;

int HttpStatus(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return 200;
    case grpc::StatusCode::INVALID_ARGUMENT:
      return 400;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return 504;
    default:
      return 503;
  }
}

void Answer(const Edge::Handler& handler, const httplib::Request& request, httplib::Response& response) {
  const Fields fields(request.params.begin(), request.params.end());
  std::string answer;
  grpc::Status status;
  try {
    status = handler(fields, answer);
  } catch (const std::out_of_range&) {
    status = {grpc::StatusCode::INVALID_ARGUMENT, "a field is missing, or too large"};
  } catch (const std::invalid_argument&) {
    status = {grpc::StatusCode::INVALID_ARGUMENT, "a field is no number"};
  } catch (const std::exception& error) {
    status = {grpc::StatusCode::UNAVAILABLE, error.what()};
  }
  response.status = HttpStatus(status);
  response.set_content(status.ok() ? answer : status.error_message(), status.ok() ? "application/json" : "text/plain");
}

httplib::Server::Handler Handling(const Edge::Handler& handler) {
  return [handler](const httplib::Request& request, httplib::Response& response) {
#ifdef ANTIPODE
    const antipode::Headers headers(request.headers.begin(), request.headers.end());
    const antipode::ScopeGuard scope(antipode::Extract(headers));
    Answer(handler, request, response);
    antipode::Headers added;
    antipode::InjectResponse(*scope.scope(), added);
    scope.scope()->End();
    for (const auto& [name, value] : added) response.set_header(name, value);
#elif defined(OPENTELEMETRY)
    const propagation::Received received(propagation::Begun({request.headers.begin(), request.headers.end()}));
    Answer(handler, request, response);
#else
    Answer(handler, request, response);
#endif
  };
}

}  // namespace

struct Edge::Server {
  httplib::Server http;
  std::thread listening;
};

Edge::Edge() : server_(std::make_unique<Server>()) {
  server_->http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server_->http.set_tcp_nodelay(true);
  // Each request has its connection: cpp-httplib polls one that is kept every 10 ms, and hundreds take a processor.
  server_->http.set_keep_alive_max_count(1);
  server_->http.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
}

Edge::~Edge() {
  server_->http.stop();
  if (server_->listening.joinable()) server_->listening.join();
}

void Edge::Post(const std::string& path, Handler handler) { server_->http.Post(path, Handling(handler)); }
void Edge::Get(const std::string& path, Handler handler) { server_->http.Get(path, Handling(handler)); }

int Edge::Start(const std::string& host, int port) {
  if (port == 0) {
    port = server_->http.bind_to_any_port(host);
  } else if (!server_->http.bind_to_port(host, port)) {
    port = -1;
  }
  if (port < 0) throw std::runtime_error("the edge cannot listen");
  server_->listening = std::thread([this] { server_->http.listen_after_bind(); });
  return port;
}

std::string Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return text;
}

}  // namespace social_graph
