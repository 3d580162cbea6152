#include <amqp.h>
#include <amqp_tcp_socket.h>

#include <stdexcept>

#include "antipode/rabbitmq_client.h"
#include "budgets/calls.h"
#include "client_checks.h"

namespace antipode::budgets {
namespace {

constexpr const char* kName = "budget";  ///< Of the exchange, of the queue and of its binding.
constexpr const char* kBody = "value";

amqp_connection_state_t Connected(const checks::Server& server) {
  amqp_connection_state_t made = amqp_new_connection();
  if (amqp_socket_open(amqp_tcp_socket_new(made), server.host.c_str(), server.port) != AMQP_STATUS_OK) {
    throw std::runtime_error("no broker");
  }
  amqp_login(made, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
  amqp_channel_open(made, 1);
  if (amqp_get_rpc_reply(made).reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error("no channel");
  return made;
}

amqp_bytes_t Bytes(const char* text) { return amqp_cstring_bytes(text); }

/// A queue that goes with its connection.
void Declare(amqp_connection_state_t of) {
  const amqp_table_t none = amqp_empty_table;
  amqp_exchange_declare(of, 1, Bytes(kName), Bytes("direct"), 0, 1, 0, 0, none);
  amqp_queue_declare(of, 1, Bytes(kName), 0, 0, 1, 1, none);
  amqp_queue_bind(of, 1, Bytes(kName), Bytes(kName), Bytes(kName), none);
  if (amqp_get_rpc_reply(of).reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error("no queue");
}

/// Messages of a channel that nothing instruments, with the broker's confirm of each.
class Plain {
 public:
  explicit Plain(const checks::Server& server) : of_(Connected(server)) {
    Declare(of_);
    if (amqp_confirm_select(of_, 1) == nullptr) throw std::runtime_error("no confirms");
  }
  ~Plain() { amqp_destroy_connection(of_); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  void Publish() {
    const int status = amqp_basic_publish(of_, 1, Bytes(kName), Bytes(kName), 1, 0, nullptr, Bytes(kBody));
    amqp_frame_t frame;
    if (status != AMQP_STATUS_OK || amqp_simple_wait_frame(of_, &frame) != AMQP_STATUS_OK ||
        frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) {
      throw std::runtime_error("no confirm");
    }
    amqp_maybe_release_buffers(of_);
  }

 private:
  amqp_connection_state_t of_;
};

}  // namespace

void CountRabbitMq(const Words& words) {
  const checks::Server server(words.at(0));
  Plain plain(server);
  rabbitmq::Options options;
  options.exchange = kName;
  options.mandatory = true;
  const auto shim = rabbitmq::Shim::Open(kDatastore, "amqp://" + words.at(0), options);
  amqp_connection_state_t native = Connected(server);
  {
    rabbitmq::Client client(shim, native, 1);
    const Drivers drivers{{"librabbitmq", amqp_version()}};
    Compare(
        "librabbitmq: publish", drivers, [&] { client.Publish(kName, kName, true, nullptr, kBody); },
        [&] { plain.Publish(); });
  }
  amqp_destroy_connection(native);
  shim->Close();
}

}  // namespace antipode::budgets
