#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/mysql.h"

struct st_mysql_res;   ///< The client's `MYSQL_RES`.
struct st_mysql_stmt;  ///< The client's `MYSQL_STMT`.

namespace antipode::mysql {

/// An instrumented client: a connection of your own, whose calls are those of libmariadb. What they commit enters the
/// current scope with its position, what they read waits for what barriers demand. Nothing is stored with values.
///
///     MYSQL* connection = mysql_real_connect(...);
///     antipode::mysql::Client client(shim, connection);         // a shim of the same server
///     if (client.Query("SELECT text FROM posts") == 0) {        // for mysql_real_query(connection, ...)
///       MYSQL_RES* rows = client.StoreResult();                 // for mysql_store_result(connection)
///     }
///
/// Each call is within the scope that is current in it. All results of a call are read before it returns: whoever acts
/// on one has the positions of all. Used by one thread at a time, as the connection.
class ANTIPODE_EXPORT Client {
 public:
  /// Asks the server what it is, and for positions with its replies. `connection` is connected, has no result that is
  /// not read, does not connect again on its own (`MYSQL_OPT_RECONNECT`) and outlives the client, by which alone it is
  /// used from now on. Throws ConfigurationError where it is none of these, or Error.
  Client(std::shared_ptr<Shim> shim, st_mysql* connection);
  /// A transaction that wrote and is still open may yet be committed: the scope is marked.
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  /// Executes one statement or several, transactions included, and returns 0, or what `Errno` says of the first. Throws
  /// UnmetError where a read is not shown what it must see, StaleSnapshot where its transaction is too old for it,
  /// ConfigurationError where the server does not say what it shows, or Error where it cannot say so now; then nothing
  /// was sent.
  int Query(std::string_view sql);
  /// Of the present result: its rows, which the caller frees, null for none; what it changed and inserted.
  st_mysql_res* StoreResult();
  [[nodiscard]] std::uint64_t AffectedRows() const;
  [[nodiscard]] std::uint64_t InsertId() const;
  /// The next result of several: 0; -1 where there is none; or what `Errno` says.
  int NextResult();
  /// Of the statement that failed, the client's own numbers included; 0 and the empty text for none.
  [[nodiscard]] unsigned Errno() const;
  [[nodiscard]] const std::string& ErrorText() const;

  /// Prepares a statement of this connection, for `mysql_stmt_prepare`.
  int Prepare(st_mysql_stmt* statement, std::string_view sql);
  /// Executes it, and stores its rows, for `mysql_stmt_execute` and `mysql_stmt_store_result`. Throws as `Query`.
  int Execute(st_mysql_stmt* statement);
  /// The next result of a prepared `CALL`, for `mysql_stmt_next_result` and `mysql_stmt_store_result`: 0; -1 where
  /// there is none; or what `Errno` says. Before the last one was read nobody knows what the procedure wrote: until
  /// then, and for good where another call comes first, the scope is marked.
  int NextResult(st_mysql_stmt* statement);
  /// For `mysql_reset_connection`.
  int Reset();

 private:
  class Traffic;
  std::unique_ptr<Traffic> traffic_;
};

}  // namespace antipode::mysql
