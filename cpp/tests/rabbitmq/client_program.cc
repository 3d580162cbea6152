// An instrumented publisher of librabbitmq, for tests/integration/rabbitmq/test_librabbitmq.py.
#include <amqp.h>
#include <amqp_tcp_socket.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "antipode/rabbitmq_client.h"
#include "antipode/scope.h"
#include "forks.h"

namespace {

using antipode::rabbitmq::Client;

constexpr int kLeastFrame = 4'096;

void Check(bool holds) {
  if (!holds) std::exit(1);
}

/// The application's own connection, with a channel.
struct Connection {
  explicit Connection(const char* port, int frame) : of(amqp_new_connection()) {
    Check(amqp_socket_open(amqp_tcp_socket_new(of), "127.0.0.1", std::atoi(port)) == AMQP_STATUS_OK);
    amqp_login(of, "/", 0, frame, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
    amqp_channel_open(of, 1);
    Check(amqp_get_rpc_reply(of).reply_type == AMQP_RESPONSE_NORMAL);
  }
  ~Connection() { amqp_destroy_connection(of); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  amqp_connection_state_t of;
};

/// What a test asserts: the scope.
void Print() { std::cout << antipode::Serialize() << std::endl; }

void Fails(const std::function<void()>& act) {
  try {
    act();
  } catch (const antipode::rabbitmq::Error& error) {
    std::cout << error.what() << std::endl;
    return;
  }
  Check(false);
}

/// Headers of the application's: its own, a lineage that it depends on, and a name that was copied.
void Given(Client& client, const std::string& exchange, const std::string& key, const std::string& given) {
  const std::vector<std::pair<std::string, std::string>> headers{
      {"own", "kept"}, {"baggage", "theirs=1,antipode=" + given}, {"antipode-write", "copied"}};
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [name, value] : headers) {
    amqp_table_entry_t entry{};
    entry.key = amqp_cstring_bytes(name.c_str());
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = amqp_cstring_bytes(value.c_str());
    entries.push_back(entry);
  }
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG;
  properties.headers = {static_cast<int>(entries.size()), entries.data()};
  properties.content_type = amqp_cstring_bytes("text/plain");
  client.Publish(exchange, key, true, &properties, "1");
}

void Headers(Client& client, const std::string& exchange, const std::string& key, const std::string& given) {
  Given(client, exchange, key, given);
  Print();
}

/// Publishes with a header of the application's of so many bytes.
void Crowded(Client& client, const std::string& exchange, const std::string& key, std::size_t bytes) {
  const std::string own(bytes, 'x');
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes("own");
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = {own.size(), const_cast<char*>(own.data())};
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {1, &entry};
  client.Publish(exchange, key, true, &properties, std::to_string(bytes));
}

/// The frames of the connection have less and less room for a lineage, and then none for the application's headers.
void Crowded(Client& client, const std::string& exchange, const std::string& key, const std::string&) {
  for (int n = 10; n < 22; ++n) {
    antipode::Append({"posts", "3e11fa47-71ca-11e1-9e33-c80aa94295" + std::to_string(n), std::uint64_t{7}});
  }
  for (const std::size_t bytes : {3'800U, 3'900U, 4'060U}) {
    Crowded(client, exchange, key, bytes);
    Print();
  }
  Fails([&] { Crowded(client, exchange, key, kLeastFrame); });
  client.Publish(exchange, key, true, nullptr, "after");
  Print();
}

/// What cannot be sent is refused, and the client goes on.
void Refused(antipode::rabbitmq::Shim& shim, Client& client, const std::string& exchange, const std::string& key) {
  const std::string longest(300, 'k');
  Fails([&] { client.Publish(exchange, longest, true, nullptr, "1"); });
  Fails([&] { shim.Write(longest, "1"); });
  Print();
  client.Publish(exchange, key, true, nullptr, "2");
  Print();
}

/// A consumer on the connection of the publisher.
void Consumed(Client& client, const std::string& exchange, const std::string& key, const std::function<void()>& begin) {
  client.Publish(exchange, key, true, nullptr, "1");
  begin();
  for (const char* body : {"2", "3"}) client.Publish(exchange, key, true, nullptr, body);
  Print();
}

/// One wait for several.
void Several(Client& client, const std::string& exchange, const std::string& key, const std::string&) {
  for (const char* body : {"1", "2", "3"}) client.Send(exchange, key, true, nullptr, body);
  client.Confirm();
  Print();
}

/// What leaves before the confirm says that it is in doubt; the next message names the one before it.
void Unconfirmed(Client& client, const std::string& exchange, const std::string& key, const std::string&) {
  client.Send(exchange, key, true, nullptr, "1");
  Print();
  client.Send(exchange, key, true, nullptr, "2");
  Print();
  client.Confirm();
  Print();
}

/// One of several comes back; the others are there.
void Unroutable(Client& client, const std::string& exchange, const std::string& key, const std::string&) {
  client.Send(exchange, key, true, nullptr, "1");
  client.Send(exchange, "nowhere", true, nullptr, "2");
  Fails([&] { client.Confirm(); });
  Print();
  client.Publish(exchange, key, true, nullptr, "3");
  Print();
}

/// The broker closes the channel.
void Missing(Client& client, const std::string& exchange, const std::string& key, const std::string&) {
  Fails([&] { client.Publish(exchange, key, true, nullptr, "1"); });
  Print();
  Fails([&] { client.Publish(exchange, key, true, nullptr, "2"); });
}

/// What no receipts hear.
void Unheard(Client& client, const std::string&, const std::string& key, const std::string&) {
  client.Publish("", key, true, nullptr, "1");
  Print();
}

/// Publishes once more when the test says so, and is not answered.
void Lost(Client& client, const std::string& exchange, const std::string& key, const std::string&) {
  client.Publish(exchange, key, true, nullptr, "1");
  Print();
  std::cin.get();
  Fails([&] { client.Publish(exchange, key, true, nullptr, "2"); });
  Print();
}

/// Publishes in each way while a transaction has written, and once after its end.
void Uncommitted(antipode::rabbitmq::Shim& shim, Client& client, const std::string& exchange, const std::string& key,
                 const std::string& given) {
  const int connection = 0;
  antipode::RecordUncommitted("posts", &connection, true);
  client.Publish(exchange, key, true, nullptr, "1");
  Given(client, exchange, key, given);
  shim.Write(key, "3");
  shim.Write(key, "4", antipode::Lineage());
  antipode::RecordUncommitted("posts", &connection, false);
  client.Publish(exchange, key, true, nullptr, "5");
}

/// A child process goes on to publish and to wait, over connections of its own, while its parent waits.
void Forked(antipode::rabbitmq::Shim& shim, const std::string& key) {
  const auto waits = [&](const char* body) {
    const antipode::ScopeGuard request;
    shim.Write(key, body);
    const auto attempt = antipode::TryBarrier(antipode::checks::Patient());
    if (!attempt) std::cerr << body << ": " << attempt.message << std::endl;
    return static_cast<bool>(attempt);
  };
  Check(waits("1"));
  shim.Write(key, "2");
  auto waiting = antipode::BarrierAsync(antipode::checks::Patient());
  const pid_t child = fork();
  if (child == 0) _exit(waits("3") && waits("4") ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  Check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Check(waiting.get().ok());
  Check(waits("5"));
}

}  // namespace

/// client PORT EXCHANGE KEY CHECK LINEAGE
int main(int count, char** words) {
  Check(count == 6);
  antipode::rabbitmq::Options options;
  options.exchange = words[2];
  if (words[4] == std::string("forked")) {
    options.receipts.emplace().bindings = {words[3]};
    options.by_routing_key = true;
  }
  const auto shim = antipode::rabbitmq::Shim::Open("news", std::string("amqp://127.0.0.1:") + words[1], options);
  const auto uncommitted = [&shim](Client& client, const std::string& exchange, const std::string& key,
                                   const std::string& given) { Uncommitted(*shim, client, exchange, key, given); };
  const auto forked = [&shim](Client&, const std::string&, const std::string& key, const std::string&) {
    Forked(*shim, key);
  };
  const auto refused = [&shim](Client& client, const std::string& exchange, const std::string& key,
                               const std::string&) { Refused(*shim, client, exchange, key); };
  std::function<void()> consumes;
  const auto consumed = [&consumes](Client& client, const std::string& exchange, const std::string& key,
                                    const std::string&) { Consumed(client, exchange, key, consumes); };
  const std::map<std::string, std::function<void(Client&, const std::string&, const std::string&, const std::string&)>>
      checks{{"headers", Headers},
             {"several", Several},
             {"unconfirmed", Unconfirmed},
             {"unroutable", Unroutable},
             {"missing", Missing},
             {"unheard", Unheard},
             {"lost", Lost},
             {"refused", refused},
             {"consumed", consumed},
             {"crowded", [](Client& client, const std::string& exchange, const std::string& key,
                            const std::string& given) { Crowded(client, exchange, key, given); }},
             {"uncommitted", uncommitted},
             {"forked", forked}};
  {
    const bool crowded = words[4] == std::string("crowded");
    const Connection connection(words[1], crowded ? kLeastFrame : AMQP_DEFAULT_FRAME_SIZE);
    consumes = [&] {
      amqp_basic_consume(connection.of, 1, amqp_cstring_bytes(words[3]), amqp_empty_bytes, 0, 1, 0, {});
    };
    Client client(shim, connection.of, 1);
    const antipode::ScopeGuard request;
    checks.at(words[4])(client, words[2], words[3], words[5]);
  }
  shim->Close();
}
