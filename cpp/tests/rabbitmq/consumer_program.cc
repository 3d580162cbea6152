// A consumer of a queue, for tests/integration/rabbitmq/test_cpp_consumers.py: by the shim, or by librabbitmq itself.
#include <amqp.h>
#include <amqp_tcp_socket.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "antipode/rabbitmq.h"
#include "antipode/scope.h"

namespace {

using antipode::rabbitmq::Shim;

/// What a test asserts: the message, and the scope that is current while it is handled.
void Print(const std::string& value, bool redelivered) {
  std::printf("%s %s %s\n", value.c_str(), redelivered ? "again" : "first", antipode::Serialize().c_str());
}

/// Handles all that is there, and fails at each message when it first comes.
void Receive(Shim& shim) {
  const auto handle = [](const antipode::rabbitmq::Delivery& delivery) {
    Print(delivery.value, delivery.redelivered);
    if (!delivery.redelivered) throw std::runtime_error("not now");
  };
  bool more = true;
  while (more) {
    try {
      more = shim.Receive(handle);
    } catch (const std::runtime_error&) {
      std::printf("failed\n");
    }
  }
}

void Check(bool holds) {
  if (!holds) std::exit(1);
}

/// Handles one message that the application's own connection consumes.
void Consume(Shim& shim, const char* port, const char* queue) {
  amqp_connection_state_t connection = amqp_new_connection();
  Check(amqp_socket_open(amqp_tcp_socket_new(connection), "127.0.0.1", std::atoi(port)) == AMQP_STATUS_OK);
  amqp_login(connection, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
  amqp_channel_open(connection, 1);
  amqp_basic_consume(connection, 1, amqp_cstring_bytes(queue), amqp_empty_bytes, 0, 1, 0, amqp_empty_table);
  amqp_envelope_t envelope;
  const timeval limit{20, 0};
  Check(amqp_consume_message(connection, &envelope, &limit, 0).reply_type == AMQP_RESPONSE_NORMAL);
  {
    const antipode::ScopeGuard request(shim.Received(antipode::rabbitmq::HeadersOf(envelope.message.properties)));
    const amqp_bytes_t& body = envelope.message.body;
    Print({static_cast<const char*>(body.bytes), body.len}, envelope.redelivered != 0);
  }
  amqp_destroy_envelope(&envelope);
  amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(connection);
}

}  // namespace

/// consumer URL PORT QUEUE shim|own
int main(int count, char** words) {
  Check(count == 5);
  antipode::rabbitmq::Options options;
  options.queue = words[3];
  const auto shim = Shim::Open("news", words[1], options);
  if (std::string(words[4]) == "shim") {
    Receive(*shim);
  } else {
    Consume(*shim, words[2], words[3]);
  }
  std::printf("after %s\n", antipode::Serialize().c_str());
  shim->Close();
}
