// One connection over libmariadb. No call on it lasts longer than its time.
#pragma once

#include <mysql.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/mysql.h"
#include "mysql/facts.h"

namespace antipode::mysql {

/// One server, and who asks it.
struct Address {
  std::string host;
  std::uint16_t port = 0;
  std::string user;
  std::string password;
  std::string database;
  std::optional<Tls> tls = {};

  [[nodiscard]] std::string name() const { return host + ":" + std::to_string(port); }
};

/// A client, or null, that the library that is called here has made. Throws ConfigurationError where another one did:
/// libmysqlclient has the same names for what lies otherwise in memory.
MYSQL* Own(MYSQL* client);
/// Makes a client that is not connected yet encrypt what it says.
void Encrypt(MYSQL* client, const Tls& tls);

/// There is no answer: the connection is gone, or the time is up. Nobody knows how far the statement came.
class Lost final : public Error {
 public:
  using Error::Error;
};

/// The server has no such table or database; no such column; or does not let the user do that.
bool IsNoTable(const Error& error);
bool IsNoColumn(const Error& error);
bool IsDenied(const Error& error);
/// Whether a number says that there is no answer; or that the server ended what it did, and nobody knows how far it
/// came.
bool IsOfClient(unsigned number);
bool IsEnding(unsigned number);
/// Throws Unreachable where a later attempt may fare better, else the error.
[[noreturn]] void Refuse(const Error& error);

using Text = std::optional<std::string>;

/// What a statement came to.
struct Answer {
  std::vector<std::string> columns;
  std::vector<std::vector<Text>> rows;
  std::uint64_t changed = 0;  ///< Rows that it changed, as the server counts.
};

/// Used by one thread at a time, but for `Interrupt`. Each statement commits by itself unless a transaction is open.
class Connection {
 public:
  /// Connects, which is the first that must be done in that time. Throws Lost, or Error where the server refuses.
  Connection(const Address& address, double timeout_s);
  /// One of the application's, which stays its own. Its own calls know no such time.
  explicit Connection(MYSQL* client);

  /// How long everything until the next call of this may take together.
  void Within(double timeout_s);
  /// Throws Lost, or Error where the server refuses the statement, which did nothing then.
  Answer Ask(const std::string& sql);
  std::vector<Row> Rows(const std::string& sql);
  /// Bytes as a literal.
  std::string Quoted(std::string_view bytes);
  /// Takes in what the server reported with its last reply.
  void NoteGtids();
  /// The GTIDs of what was committed since this was asked last, as the server reported them; empty for none.
  std::string TakeGtids();
  /// Its number in the handshake: a server says its own there, and a proxy that accepts connections one of its own.
  [[nodiscard]] std::uint64_t Accepted() const { return mysql_thread_id(client_); }
  /// Whether it can be used again: it was not lost, and the server has not closed it.
  [[nodiscard]] bool Usable() const;
  [[nodiscard]] bool lost() const { return lost_; }
  /// Ends what another thread waits for on it.
  void Interrupt();

 private:
  struct Free {
    void operator()(MYSQL* client) const { mysql_close(client); }
  };
  void Finish(int waits_for, int (*go_on)(Connection&, int));
  int Wait(int events);
  [[noreturn]] void Fail();
  void Note(const char* data, std::size_t size);
  Answer Stored();

  std::unique_ptr<MYSQL, Free> owned_;
  MYSQL* client_;
  double deadline_s_ = 0;
  int socket_ = -1;
  bool lost_ = false;
  std::string gtids_;
  std::string told_;
  // What the client's steps return.
  MYSQL* connected_ = nullptr;
  MYSQL_RES* stored_ = nullptr;
  int failed_ = 0;
};

}  // namespace antipode::mysql
