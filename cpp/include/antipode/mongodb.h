#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/shim.h"
#include "antipode/stored.h"

struct _mongoc_client_session_t;  ///< The client's `mongoc_client_session_t`.

namespace antipode::mongodb {

/// What a server refused, or why it did not answer.
class ANTIPODE_EXPORT Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int code = 0) : std::runtime_error(message), code_(code) {}
  ~Error() override;
  /// The server's code; 0 where it did not answer.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// Where values are, and how they are read.
struct Options {
  std::string database;  ///< Of the values, and of the records of promises.
  std::string collection;
  std::string field = "value";                 ///< Of the documents in which values are.
  ReadsFrom reads_from = ReadsFrom::kPrimary;  ///< Whether the URI's reads go to the primary or to a replica.
  bool merge_reads = true;                     ///< Whether what a read finds enters the current scope.
  std::optional<ReadBarriers> barriers = {};   ///< Whether its reads wait automatically; none: as configured.
};

/// Table 2 of one collection, in the layout that all languages share: the lineage is in the field `_ap` next to the
/// value. Thread-safe; connections are pooled.
///
///     auto posts = antipode::mongodb::Shim::Open("posts", "mongodb://posts.internal/?replicaSet=rs0", {"app",
///     "posts"}); posts->Write("1", "hello");                    // the lineage of the current scope goes with it, and
///     grows antipode::Barrier(options); posts->Read("1");                              // at what the barrier waited
///     for, whatever server answers
class ANTIPODE_EXPORT Shim final : public Store {
 public:
  /// Connects when it is first used, and registers the shim. The URI's concerns and preferences hold. Throws
  /// ConfigurationError where it is none, does not acknowledge writes, or reads in a way that cannot wait.
  static std::shared_ptr<Shim> Open(const std::string& datastore, const std::string& uri, const Options& options);
  ~Shim() override;

  /// Sets the document `key` to a value, kept as bytes, with its lineage; whatever else was in the document
  /// goes. One round trip. `lineage` is what the value depends on, the current one unless given. Returns it with the
  /// write, which enters the current scope. Throws Error; where the server did not acknowledge, the scope is marked.
  /// With a promise that it fulfils it is a transaction, of four round trips; then it throws PromiseAbandoned where
  /// nobody waits for that any more.
  Lineage Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage = std::nullopt,
                const std::optional<Promise>& fulfils = std::nullopt);
  /// Deletes it; a tombstone keeps the lineage for who finds nothing. Two round trips.
  Lineage Delete(std::string_view key, const std::optional<Lineage>& lineage = std::nullopt);
  /// One round trip, two where there is no document. The server holds it back until it has what barriers demand. Throws
  /// UnmetError where it is not, or Error.
  Reading Read(std::string_view key);

  /// Records, in the open transaction of a session of your own, that a promise is fulfilled: with its commit the record
  /// becomes visible together with its data. Throws PromiseAbandoned, where the server has ended the transaction,
  /// ConfigurationError where none is open, or Error.
  void Fulfil(_mongoc_client_session_t* session, const Promise& promise);

  [[nodiscard]] bool CanPoll() const override;
  [[nodiscard]] bool Floors() const override { return true; }
  [[nodiscard]] bool Fences() const override { return reads_from() == ReadsFrom::kPrimary; }
  [[nodiscard]] bool Promises() const override { return true; }
  [[nodiscard]] bool Abandons() const override { return reads_from() == ReadsFrom::kPrimary; }
  std::unique_ptr<Endpoint> OpenEndpoint(double timeout_s) override;
  std::set<WriteId> Fence(double timeout_s) override;
  bool AbandonPromise(const Promise& promise, double timeout_s) override;
  void Close() override;
  void Forked() override;

  /// For the library.
  struct Inside;
  [[nodiscard]] Inside& inside() const noexcept { return *inside_; }

 private:
  class Table;
  Shim(const std::string& datastore, const std::string& uri, const Options& options);
  std::unique_ptr<Table> table_;
  std::unique_ptr<Inside> inside_;
};

}  // namespace antipode::mongodb
