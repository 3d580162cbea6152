// Connections of another library with the same names: libmysqlclient's are laid out otherwise.
#include <gtest/gtest.h>
#include <mysql.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "antipode/errors.h"
#include "mysql/connection.h"

namespace antipode::mysql {
namespace {

/// What another library has where this one has pointers: the same word everywhere.
MYSQL Foreign(const void* word) {
  MYSQL made;
  for (std::size_t at = 0; at + sizeof word <= sizeof made; at += sizeof word) {
    std::memcpy(reinterpret_cast<char*>(&made) + at, &word, sizeof word);
  }
  return made;
}

std::string WhyNot(MYSQL* client) {
  try {
    return Own(client) == client ? "" : "another one";
  } catch (const ConfigurationError& error) {
    return error.what();
  }
}

// A connection of the library itself passes, connected or not, whatever its character set is.
TEST(MySqlLibrary, TakesConnectionsOfItsOwn) {
  const std::unique_ptr<MYSQL, decltype(&mysql_close)> client(mysql_init(nullptr), &mysql_close);
  EXPECT_EQ(WhyNot(client.get()), "");
  mysql_options(client.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
  EXPECT_EQ(WhyNot(client.get()), "");
}

// One of another layout is refused by a sentence that says what to link: nothing of it is called.
TEST(MySqlLibrary, RefusesWhatAnotherOneMade) {
  static const int of_this_program = 0;
  const auto on_the_heap = std::make_unique<int>();
  for (const void* word : {static_cast<const void*>(nullptr), static_cast<const void*>(on_the_heap.get()),
                           static_cast<const void*>(&of_this_program), static_cast<const void*>(stdout)}) {
    MYSQL foreign = Foreign(word);
    const std::string why = WhyNot(&foreign);
    EXPECT_NE(why.find("link it alone"), std::string::npos);
    EXPECT_NE(why.find(mysql_get_client_info()), std::string::npos);
  }
}

}  // namespace
}  // namespace antipode::mysql
