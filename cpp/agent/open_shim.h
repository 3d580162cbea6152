// Shims of real stores, by which the agent writes and reads texts.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim.h"
#include "antipode/stored.h"
#include "json.h"

namespace antipode::agent {

using json::Json;

/// Another language has it, and this agent does not yet: the test that asks for it is skipped.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A shim that is open. Its end unregisters and closes it.
class OpenShim {
 public:
  /// A value, and its lineage; none where a client reads.
  using Found = std::pair<std::optional<std::string>, std::optional<Lineage>>;

  virtual ~OpenShim() = default;
  virtual Store& store() = 0;
  /// The lineage with the new write; none of a client.
  virtual std::optional<Lineage> Write(const std::string& key, const std::string& value,
                                       const std::optional<Lineage>& lineage,
                                       const std::optional<Promise>& fulfils) = 0;
  virtual std::optional<Lineage> Delete(const std::string& key, const std::optional<Lineage>& lineage) = 0;
  virtual Found Read(const std::string& key) = 0;
  /// Writes and fulfils in a transaction that is rolled back.
  virtual void RollBack(const std::string& key, const std::string& value, const Promise& fulfils) = 0;
};

/// One of Table 2, opened by the shim's own `Open`.
template <typename Shim>
class TableShim : public OpenShim {
 public:
  explicit TableShim(std::shared_ptr<Shim> shim) : shim_(std::move(shim)) {}
  ~TableShim() override { shim_->Close(); }
  Store& store() final { return *shim_; }
  std::optional<Lineage> Write(const std::string& key, const std::string& value, const std::optional<Lineage>& lineage,
                               const std::optional<Promise>& fulfils) final {
    return shim_->Write(key, value, lineage, fulfils);
  }
  std::optional<Lineage> Delete(const std::string& key, const std::optional<Lineage>& lineage) final {
    return shim_->Delete(key, lineage);
  }
  Found Read(const std::string& key) final {
    Reading reading = shim_->Read(key);
    return {std::move(reading.value), std::move(reading.lineage)};
  }

 protected:
  [[nodiscard]] Shim& shim() const { return *shim_; }

 private:
  std::shared_ptr<Shim> shim_;
};

/// The stores of which there are shims.
std::vector<std::string> StoresHere();
/// Opens what a request describes. Throws Unsupported.
std::unique_ptr<OpenShim> OpenShimOf(const Json& given);
/// What a shim decides without its store. Throws Unsupported.
Json Decide(const Json& request);

/// Each store's own, where it was built.
std::unique_ptr<OpenShim> OpenMongodb(const Json& given);
std::unique_ptr<OpenShim> OpenMongodbClient(const Json& given);
Json DecideMongodb(const std::string& kind, const Json& given);
std::unique_ptr<OpenShim> OpenMysql(const Json& given);
std::unique_ptr<OpenShim> OpenMysqlClient(const Json& given);
Json DecideMysql(const std::string& kind, const Json& given);
std::unique_ptr<OpenShim> OpenRabbitmq(const Json& given);
std::unique_ptr<OpenShim> OpenRabbitmqClient(const Json& given);
Json DecideRabbitmq(const std::string& kind, const Json& given);
std::unique_ptr<OpenShim> OpenRedis(const Json& given);
std::unique_ptr<OpenShim> OpenRedisClient(const Json& given);
Json DecideRedis(const std::string& kind, const Json& given);

}  // namespace antipode::agent
