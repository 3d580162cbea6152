// RabbitMQ in the agent: messages, and the last one of each routing key, as a consumer keeps it that builds a table.
#include <map>
#include <mutex>

#include "antipode/rabbitmq.h"
#include "antipode/scope.h"
#include "open_shim.h"

namespace antipode::agent {
namespace {

class RabbitmqShim final : public OpenShim {
 public:
  explicit RabbitmqShim(std::shared_ptr<rabbitmq::Shim> shim) : shim_(std::move(shim)) {}
  ~RabbitmqShim() override { shim_->Close(); }
  Store& store() override { return *shim_; }

  std::optional<Lineage> Write(const std::string& key, const std::string& value, const std::optional<Lineage>& lineage,
                               const std::optional<Promise>& fulfils) override {
    return shim_->Write(key, value, lineage, fulfils);
  }
  std::optional<Lineage> Delete(const std::string&, const std::optional<Lineage>&) override {
    throw Unsupported("a published message cannot be deleted");
  }
  Found Read(const std::string& key) override {
    const std::lock_guard guard(lock_);
    while (auto delivery = shim_->Read()) last_[delivery->key] = std::move(*delivery);
    const auto found = last_.find(key);
    if (found == last_.end()) return {};
    Transfer(found->second.lineage);
    return {found->second.value, found->second.lineage};
  }
  void RollBack(const std::string&, const std::string&, const Promise&) override {
    throw Unsupported("C++ publishes in no transactions");
  }

 private:
  std::shared_ptr<rabbitmq::Shim> shim_;
  std::mutex lock_;
  std::map<std::string, rabbitmq::Delivery> last_;
};

}  // namespace

std::unique_ptr<OpenShim> OpenRabbitmq(const Json& given) {
  if (given.value("reads_from", "primary") == "replica") throw Unsupported("C++ listens to no receipts");
  const Json& server = given.at("server");
  rabbitmq::Options options;
  options.exchange = server.at("exchange");
  options.queue = server.at("queue");
  options.mandatory = true;
  options.merge_reads = false;
  return std::make_unique<RabbitmqShim>(rabbitmq::Shim::Open(given.at("datastore"), server.at("url"), options));
}

Json DecideRabbitmq(const std::string& kind, const Json&) {
  throw Unsupported("C++ decides nothing of RabbitMQ that is called '" + kind + "'");
}

}  // namespace antipode::agent
