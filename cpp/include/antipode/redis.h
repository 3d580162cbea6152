#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/shim.h"
#include "antipode/stored.h"

namespace antipode::redis {

/// What a server refused, or why it did not answer.
class ANTIPODE_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// How one server is read and written.
struct Options {
  ReadsFrom reads_from = ReadsFrom::kPrimary;
  bool merge_reads = true;                    ///< Whether what a read finds enters the current scope.
  std::string prefix = "ap:";                 ///< Of companion keys, alike in every service; not empty.
  bool keep_log_history = false;              ///< Whether a writer notes, after a promotion, where the old log ended.
  std::chrono::duration<double> timeout{5};   ///< After which the client gives a server up.
  std::optional<ReadBarriers> barriers = {};  ///< Whether its reads wait automatically; none: as configured.
};

/// Table 2 of one server, in the layout that all languages share: the lineage is in a companion key.
/// Thread-safe; connections are pooled.
///
///     auto posts = antipode::redis::Shim::Open("posts", "posts.internal", 6379);
///     posts->Write("1", "hello");   // the lineage of the current scope goes with it, and grows
///     antipode::Barrier(options);
///     posts->Read("1");             // what the barrier waited for, on whatever connection
class ANTIPODE_EXPORT Shim final : public Store {
 public:
  /// Connects when it is first used, and registers the shim. Throws ConfigurationError where the prefix is empty.
  static std::shared_ptr<Shim> Open(const std::string& datastore, const std::string& host, std::uint16_t port,
                                    const Options& options = {});
  ~Shim() override;

  /// Sets a key to a value, with its lineage, in one round trip; two where it fulfils a promise, which is of
  /// the same transaction. `lineage` is what the value depends on, the current one unless given. Returns it with the
  /// write, which enters the current scope. Throws PromiseAbandoned, or Error; without an answer the scope is marked.
  Lineage Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage = std::nullopt,
                const std::optional<Promise>& fulfils = std::nullopt);
  /// Deletes a key; a tombstone keeps the lineage for who finds nothing.
  Lineage Delete(std::string_view key, const std::optional<Lineage>& lineage = std::nullopt);
  /// One round trip. A read is held back until its own connection shows what barriers demand. Throws UnmetError where
  /// it does not, or Error.
  Reading Read(std::string_view key);

  [[nodiscard]] bool Floors() const override { return true; }
  [[nodiscard]] bool Fences() const override { return reads_from() == ReadsFrom::kPrimary; }
  [[nodiscard]] bool Promises() const override { return true; }
  [[nodiscard]] bool Abandons() const override { return reads_from() == ReadsFrom::kPrimary; }
  std::unique_ptr<Endpoint> OpenEndpoint(double timeout_s) override;
  std::set<WriteId> Fence(double timeout_s) override;
  [[nodiscard]] std::optional<WriteId> LogStart(const std::string& key) const override;
  bool AbandonPromise(const Promise& promise, double timeout_s) override;
  void Close() override;
  void Forked() override;

  /// For the library.
  struct Inside;
  [[nodiscard]] Inside& inside() const noexcept;

 private:
  class Table;
  Shim(const std::string& datastore, const std::string& host, std::uint16_t port, const Options& options);
  std::unique_ptr<Table> table_;
};

}  // namespace antipode::redis
