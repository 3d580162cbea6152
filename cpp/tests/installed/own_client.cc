// Redis by a client of your own: `Client` has `command` as redis++ has
// it, on one connection.
#include <antipode/barrier.h>
#include <antipode/redis_position.h>
#include <antipode/shim.h>

#include <iostream>
#include <map>
#include <string>

namespace redis = antipode::redis;

/// One server, as barriers see it. What writes or reads asks on its own
/// connection where the server stands then.
template <typename Client>
class Server final : public antipode::Store {
 public:
  Server(Client& client, antipode::ReadsFrom reads_from)
      : Store("posts", reads_from), client_(client) {}

  void Set(const std::string& key, const std::string& value) {
    client_.command("set", key, value);
    antipode::CurrentScope()->Merge(
        redis::OfWrite(datastore(), StateOf()));
  }
  std::string Get(const std::string& key) {
    const std::string value = client_.command("get", key);
    antipode::CurrentScope()->Merge(
        redis::OfRead(datastore(), StateOf()));
    return value;
  }

  std::unique_ptr<antipode::Endpoint> OpenEndpoint(
      double /*timeout_s*/) override {
    return std::make_unique<Asked>(*this);
  }

 private:
  struct Asked final : antipode::Endpoint {
    explicit Asked(Server& asked) : server(asked) {}
    antipode::Observation Observe(
        const std::set<antipode::WriteId>& writes,
        double /*timeout_s*/) override {
      const auto state = server.StateOf();
      if (!state)
        throw antipode::Unreachable(
            "the server does not say where it stands");
      return redis::Shown(*state, writes);
    }
    Server& server;
  };
  std::optional<redis::ServerState> StateOf() {
    return redis::StateOf(client_.command("info", "replication"));
  }

  Client& client_;
};

/// A server and its client in memory, which stands where it is told to.
struct InMemory {
  std::string role;
  int offset = 1;
  std::map<std::string, std::string> values;

  std::string command(const std::string& name, const std::string& key,
                      const std::string& value = "") {
    const std::string log(40, 'a');
    const std::string offsets =
        role == "master" ? "master_repl_offset:"
                         : "master_link_status:up\nslave_repl_offset:";
    if (name == "info")
      return "role:" + role + "\nmaster_replid:" + log + "\n" +
             offsets + std::to_string(offset);
    if (name == "set") values[key] = value, ++offset;
    return values[key];
  }
};

int main() {
  InMemory near{"master"};
  InMemory far{"slave"};
  const auto primary = std::make_shared<Server<InMemory>>(
      near, antipode::ReadsFrom::kPrimary);
  const auto replica = std::make_shared<Server<InMemory>>(
      far, antipode::ReadsFrom::kReplica);
  antipode::Register(replica);
  const antipode::ScopeGuard request;
  primary->Set("1", "hello");
  antipode::BarrierOptions options;
  options.timeout = antipode::Seconds(0.05);
  std::cout << "late: " << antipode::TryBarrier(options).code << '\n';
  far = {"slave", near.offset, near.values};  // It is replicated.
  options.timeout = antipode::Seconds(20);
  antipode::Barrier(options);
  std::cout << "read: " << replica->Get("1") << ", depends on "
            << antipode::Current().writes().size() << '\n';
  replica->Close();
}
