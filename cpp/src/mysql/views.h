// Views that call functions which may write: neither the text of a statement that reads one nor its reply, where that
// has rows, says that it wrote. `SHOW CREATE TABLE` says what a view is made of, and takes no snapshot; what nobody may
// see of a view may write. No I/O.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mysql/facts.h"
#include "mysql/functions.h"

namespace antipode::mysql {

/// The tables and views that a text reads, as it spells them.
std::set<std::string> NamesRead(std::string_view sql);

/// Asks a server; throws as a connection.
using Asked = std::function<std::vector<Row>(const std::string& sql)>;

/// The names of the views of servers, for all connections that reach them: no other name is asked about. Thread-safe.
class Listing {
 public:
  /// Whether nobody has to ask, since the server is known to have none.
  bool Empty(const std::string& server, double now_s);
  /// Those of the names that may be a view's, in whatever schema; asks for the views where that was long ago.
  std::set<std::string> Views(const std::string& server, std::set<std::string> names, const Asked& asked, double now_s);
  /// A view may have been made.
  void Forget(const std::string& server);

 private:
  struct Listed {
    std::optional<std::set<std::string>> names;  ///< In small letters; none for any name.
    double until_s = 0;
  };
  std::mutex lock_;
  std::map<std::string, Listed> listed_;
};

/// What one connection knows of the names that its statements read.
class ViewsSeen {
 public:
  /// Whether names that a statement reads have a view that may write; asks what they stand for. `harmless` are
  /// functions of the application's that write nothing. Throws as a connection that is lost.
  bool MayWrite(const std::set<std::string>& names, Flavor flavor, const Functions& harmless, const Asked& asked,
                double now_s);
  /// Something was defined anew, or another schema is the default.
  void Forget() { known_.clear(); }

 private:
  void Ask(const std::string& name, Flavor flavor, const Functions& harmless, const Asked& asked);
  [[nodiscard]] bool Writes(const std::string& name) const;

  std::map<std::string, bool> known_;  ///< Whether what it stands for may write.
  double since_s_ = 0;
};

}  // namespace antipode::mysql
