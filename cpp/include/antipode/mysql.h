#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/shim.h"
#include "antipode/stored.h"

struct st_mysql;  ///< The client's `MYSQL`.

namespace antipode::mysql {

/// What a server refused, or why it did not answer.
class ANTIPODE_EXPORT Error : public std::runtime_error {
 public:
  Error(const std::string& message, unsigned number) : std::runtime_error(message), number_(number) {}
  ~Error() override;
  /// The server's number, or the client's; 0 for none.
  [[nodiscard]] unsigned number() const noexcept { return number_; }

 private:
  unsigned number_;
};

/// How connections are encrypted, those to the servers that a replica follows, too.
struct Tls {
  std::string ca;    ///< A file of the certificates that are trusted.
  std::string cert;  ///< A file of the one that this process shows, and one of its key; empty for none.
  std::string key;
  bool verify = true;  ///< Whether a server must show a trusted one, in the name of its host.
};

/// How one server of MySQL or MariaDB is read and written.
struct Options {
  std::string user;
  std::string password;
  std::string database;  ///< Where the tables of `TableStatements` are; there are no promises without one.
  ReadsFrom reads_from = ReadsFrom::kPrimary;
  bool merge_reads = true;                    ///< Whether what a read finds enters the current scope.
  std::optional<ReadBarriers> barriers = {};  ///< Whether its reads wait automatically; none: as configured.
  std::chrono::duration<double> timeout{60};  ///< After which a read or write gives the server up.
  std::optional<Tls> tls = {};                ///< None: what is said to the server is not encrypted.
  /// States that all statements of a connection reach one server, whatever is between. Otherwise each connection is
  /// checked, and where that is not known, reads that have to wait are refused.
  bool one_server = false;
  /// Functions, stored or loadable, that write nothing: each `name` or `schema.name`, as statements have them, in any
  /// case. After a statement that calls another one that is not built in, the server is asked whether it wrote.
  std::set<std::string> readonly_functions = {};
};

/// What makes the tables that values, deletions and promises need, for whoever runs migrations: the library makes none.
ANTIPODE_EXPORT const std::vector<std::string>& TableStatements();

/// Table 2 of one server, in the layout that all languages share: the lineage lies in an invisible column of the row.
/// Thread-safe; connections are pooled.
///
///     auto posts = antipode::mysql::Shim::Open("posts", "posts.internal", 3306, {"app", password, "blog"});
///     posts->Write("1", "hello");   // the lineage of the current scope goes with it, and grows
///     antipode::Barrier(options);
///     posts->Read("1");             // what the barrier waited for, on whatever connection
class ANTIPODE_EXPORT Shim final : public Store {
 public:
  /// Connects when it is first used, and registers the shim. Throws ConfigurationError where its certificates do not
  /// fit together.
  static std::shared_ptr<Shim> Open(const std::string& datastore, const std::string& host, std::uint16_t port,
                                    const Options& options);
  ~Shim() override;

  /// Sets a key to a value, with its lineage, in one statement; in a transaction where it fulfils a promise.
  /// `lineage` is what the value depends on, the current one unless given. Returns it with the write, which enters the
  /// current scope. Throws PromiseAbandoned, ConfigurationError where a table is missing, or Error; where nobody knows
  /// whether it was committed the scope is marked.
  Lineage Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage = std::nullopt,
                const std::optional<Promise>& fulfils = std::nullopt);
  /// Deletes a key; a tombstone keeps the lineage for who finds nothing.
  Lineage Delete(std::string_view key, const std::optional<Lineage>& lineage = std::nullopt);
  /// A read is held back until its own connection shows what barriers demand. Throws UnmetError where it does not, or
  /// as `Write`.
  Reading Read(std::string_view key);
  /// Records, in the open transaction of a connection of your own, that a promise is fulfilled: with its commit the
  /// record becomes visible together with its data. Throws PromiseAbandoned, where the transaction must be rolled back,
  /// ConfigurationError where none is open or the table is missing, or Error.
  void Fulfil(st_mysql* connection, const Promise& promise);

  [[nodiscard]] bool Floors() const override { return true; }
  [[nodiscard]] bool Fences() const override { return reads_from() == ReadsFrom::kPrimary; }
  [[nodiscard]] bool Promises() const override;
  [[nodiscard]] bool Abandons() const override { return reads_from() == ReadsFrom::kPrimary && Promises(); }
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

}  // namespace antipode::mysql
