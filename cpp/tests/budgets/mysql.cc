#include <mysql.h>

#include <initializer_list>
#include <stdexcept>

#include "antipode/mysql_client.h"
#include "budgets/calls.h"
#include "client_checks.h"

namespace antipode::budgets {
namespace {

using Statements = std::initializer_list<const char*>;

MYSQL* Connected(const checks::Server& server, const Words& words) {
  MYSQL* made = mysql_init(nullptr);
  if (mysql_real_connect(made, server.host.c_str(), words.at(1).c_str(), words.at(2).c_str(), words.at(3).c_str(),
                         server.port, nullptr, 0) == nullptr) {
    throw std::runtime_error(mysql_error(made));
  }
  return made;
}

void Ask(MYSQL* plain, const std::string& sql) {
  if (mysql_real_query(plain, sql.data(), sql.size()) != 0) throw std::runtime_error(mysql_error(plain));
  mysql_free_result(mysql_store_result(plain));
}

void Ask(mysql::Client& client, const std::string& sql) {
  if (client.Query(sql) != 0) throw std::runtime_error(client.ErrorText());
  mysql_free_result(client.StoreResult());
}

void Count(mysql::Client& client, MYSQL* plain, const char* name, const Statements& statements) {
  const auto all = [&](auto&& on) {
    for (const char* sql : statements) Ask(on, sql);
  };
  Compare(
      std::string("libmariadb: ") + name, {{"libmariadb", mysql_get_client_info()}}, [&] { all(client); },
      [&] { all(plain); });
}

}  // namespace

void CountMySql(const Words& words) {
  const checks::Server server(words.at(0));
  const auto shim = mysql::Shim::Open(kDatastore, server.host, server.port,
                                      {words.at(1), words.at(2), words.at(3), ReadsFrom::kPrimary});
  MYSQL* plain = Connected(server, words);
  MYSQL* native = Connected(server, words);
  {
    mysql::Client client(shim, native);
    Ask(plain, "CREATE TABLE IF NOT EXISTS budget (id INT PRIMARY KEY, n INT)");
    const char* write = "REPLACE INTO budget VALUES (1, 1)";
    Count(client, plain, "SELECT", {"SELECT n FROM budget WHERE id = 1"});
    Count(client, plain, "REPLACE", {write});
    Count(client, plain, "transaction of 2 REPLACEs", {"BEGIN", write, write, "COMMIT"});
  }
  mysql_close(native);
  mysql_close(plain);
  shim->Close();
}

}  // namespace antipode::budgets
