#include "mysql/connection.h"

#include <dlfcn.h>
#include <errmsg.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "antipode/clock.h"
#include "antipode/shim.h"
#include "antipode/sockets.h"

namespace antipode::mysql {
namespace {

/// The server is starting, stopping, full or held up; a later check may succeed.
const std::set<unsigned>& kPassing =
    *new std::set<unsigned>{1040, 1053, 1077, 1078, 1079, 1129, 1203, 1205, 1213, 1226, 1317, 1927, 3032};
/// It ended the session, or is going away: nobody knows how far a statement came.
const std::set<unsigned>& kEnding = *new std::set<unsigned>{1053, 1077, 1078, 1079, 1317, 1927, 3032};

MYSQL* Begun() {
  static std::once_flag begun;
  std::call_once(begun, [] { mysql_library_init(0, nullptr, nullptr); });
  return Own(mysql_init(nullptr));
}

/// Of the library or program that has something in its image; null where nobody knows.
const void* ImageOf(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) == 0 ? nullptr : found.dli_fbase;
}

struct FreeResult {
  void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
};

}  // namespace

Error::~Error() = default;

bool IsNoTable(const Error& error) { return error.number() == 1049 || error.number() == 1146; }
bool IsNoColumn(const Error& error) { return error.number() == 1054; }
bool IsDenied(const Error& error) { return error.number() == 1044 || error.number() == 1142 || error.number() == 1143; }

bool IsOfClient(unsigned number) {
  return number == 0 || (number >= CR_MIN_ERROR && number <= CR_MAX_ERROR) ||
         (number >= CER_MIN_ERROR && number <= CER_MAX_ERROR);
}

bool IsEnding(unsigned number) { return kEnding.count(number) != 0; }

/// Each library's clients use character sets of its own, and the text by which it says its version is one of its own,
/// too. In libmysqlclient's layout something else is there, which is in no image, or in another one.
MYSQL* Own(MYSQL* client) {
  if (client == nullptr) return client;
  const char* said = mysql_get_client_info();
  const void* own = ImageOf(said);
  if (own == nullptr || ImageOf(client->charset) == own) return client;
  throw ConfigurationError("this MYSQL is not one of the library that antipode::mysql calls, which says it is " +
                           std::string(said) +
                           ": build against libmariadb and link it alone, for libmysqlclient lays out the same type "
                           "otherwise");
}

void Encrypt(MYSQL* client, const Tls& tls) {
  const my_bool on = 1;
  const my_bool verify = tls.verify ? 1 : 0;
  mysql_options(client, MYSQL_OPT_SSL_ENFORCE, &on);
  mysql_options(client, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  const auto use = [client](mysql_option option, const std::string& file) {
    if (!file.empty()) mysql_options(client, option, file.c_str());
  };
  use(MYSQL_OPT_SSL_CA, tls.ca);
  use(MYSQL_OPT_SSL_CERT, tls.cert);
  use(MYSQL_OPT_SSL_KEY, tls.key);
}

void Refuse(const Error& error) {
  if (dynamic_cast<const Lost*>(&error) != nullptr || kPassing.count(error.number()) != 0) {
    throw Unreachable(error.what());
  }
  throw Error(error);
}

Connection::Connection(const Address& address, double timeout_s) : owned_(Begun()), client_(owned_.get()) {
  if (client_ == nullptr) throw Lost("no memory for a connection to " + address.name(), 0);
  Within(timeout_s);
  // The client is stopped by `Wait`; its own times, in whole seconds, hold where it closes a connection.
  const unsigned whole_s = static_cast<unsigned>(std::ceil(std::clamp(timeout_s, 1.0, 60.0)));
  const my_bool off = 0;
  const unsigned local_files = 0;
  mysql_options(client_, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_options(client_, MYSQL_OPT_CONNECT_TIMEOUT, &whole_s);
  mysql_options(client_, MYSQL_OPT_READ_TIMEOUT, &whole_s);
  mysql_options(client_, MYSQL_OPT_WRITE_TIMEOUT, &whole_s);
  mysql_options(client_, MYSQL_OPT_RECONNECT, &off);
  mysql_options(client_, MYSQL_OPT_LOCAL_INFILE, &local_files);
  mysql_options(client_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  if (address.tls) Encrypt(client_, *address.tls);
  const char* database = address.database.empty() ? nullptr : address.database.c_str();
  Finish(mysql_real_connect_start(&connected_, client_, address.host.c_str(), address.user.c_str(),
                                  address.password.c_str(), database, address.port, nullptr, 0),
         [](Connection& self, int events) { return mysql_real_connect_cont(&self.connected_, self.client_, events); });
  if (connected_ == nullptr) Fail();
  socket_ = mysql_get_socket(client_);
}

Connection::Connection(MYSQL* client) : client_(Own(client)), socket_(mysql_get_socket(client)) {
  mysql_options(client_, MYSQL_OPT_NONBLOCK, nullptr);
}

void Connection::Within(double timeout_s) { deadline_s_ = SystemClock().Now() + timeout_s; }

/// Goes on with what the client has begun until it is done.
void Connection::Finish(int waits_for, int (*go_on)(Connection&, int)) {
  while (waits_for != 0) waits_for = go_on(*this, Wait(waits_for));
}

/// Which of the events has come; at the deadline, the client's timeout.
int Connection::Wait(int events) {
  int awaited = 0;
  if ((events & MYSQL_WAIT_READ) != 0) awaited |= POLLIN;
  if ((events & MYSQL_WAIT_WRITE) != 0) awaited |= POLLOUT;
  if ((events & MYSQL_WAIT_EXCEPT) != 0) awaited |= POLLPRI;
  const int ready = AwaitSocket(mysql_get_socket(client_), static_cast<short>(awaited), deadline_s_);
  if (ready == 0) return MYSQL_WAIT_TIMEOUT;
  // What ended is learned by reading from it, or by writing.
  const bool ended = (ready & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  int come = 0;
  if (ended || (ready & POLLIN) != 0) come |= events & MYSQL_WAIT_READ;
  if (ended || (ready & POLLOUT) != 0) come |= events & MYSQL_WAIT_WRITE;
  if (ended || (ready & POLLPRI) != 0) come |= events & MYSQL_WAIT_EXCEPT;
  return come;
}

void Connection::Fail() {
  const unsigned number = mysql_errno(client_);
  std::string message = mysql_error(client_);
  if (!IsOfClient(number) && kEnding.count(number) == 0) throw Error(message, number);
  lost_ = true;
  if (SystemClock().Now() >= deadline_s_) message = "the server did not answer in time";
  throw Lost(message, number);
}

Answer Connection::Ask(const std::string& sql) {
  if (lost_) throw Lost("the connection is lost", 0);
  Finish(mysql_real_query_start(&failed_, client_, sql.data(), sql.size()),
         [](Connection& self, int events) { return mysql_real_query_cont(&self.failed_, self.client_, events); });
  if (failed_ != 0) Fail();
  NoteGtids();
  if (mysql_field_count(client_) != 0) return Stored();
  Answer answer;
  answer.changed = mysql_affected_rows(client_);
  return answer;
}

Answer Connection::Stored() {
  Finish(mysql_store_result_start(&stored_, client_),
         [](Connection& self, int events) { return mysql_store_result_cont(&self.stored_, self.client_, events); });
  const std::unique_ptr<MYSQL_RES, FreeResult> result(stored_);
  if (!result) Fail();
  Answer answer;
  const unsigned width = mysql_num_fields(result.get());
  const MYSQL_FIELD* fields = mysql_fetch_fields(result.get());
  for (unsigned nth = 0; nth < width; ++nth) answer.columns.emplace_back(fields[nth].name, fields[nth].name_length);
  while (MYSQL_ROW found = mysql_fetch_row(result.get())) {
    const unsigned long* sizes = mysql_fetch_lengths(result.get());
    std::vector<Text>& row = answer.rows.emplace_back();
    for (unsigned nth = 0; nth < width; ++nth) {
      row.push_back(found[nth] == nullptr ? Text() : Text(std::in_place, found[nth], sizes[nth]));
    }
  }
  return answer;
}

std::vector<Row> Connection::Rows(const std::string& sql) {
  const Answer answer = Ask(sql);
  std::vector<Row> rows;
  for (const auto& found : answer.rows) {
    Row& row = rows.emplace_back();
    for (std::size_t nth = 0; nth < found.size(); ++nth) row[answer.columns[nth]] = found[nth].value_or("");
  }
  return rows;
}

std::string Connection::Quoted(std::string_view bytes) {
  std::string quoted(bytes.size() * 2 + 1, '\0');
  quoted.resize(mysql_real_escape_string(client_, quoted.data(), bytes.data(), bytes.size()));
  return "_binary'" + quoted + "'";
}

/// Without a change the client still has what was reported to it last.
void Connection::NoteGtids() {
  if ((client_->server_status & SERVER_SESSION_STATE_CHANGED) == 0) return;
  const char* data = nullptr;
  std::size_t size = 0;
  if (mysql_session_track_get_first(client_, SESSION_TRACK_GTIDS, &data, &size) == 0) {
    Note(data, size);
    return;
  }
  // Names and values of variables, alternating.
  int left = mysql_session_track_get_first(client_, SESSION_TRACK_SYSTEM_VARIABLES, &data, &size);
  while (left == 0) {
    const bool last_gtid = std::string_view(data, size) == "last_gtid";
    left = mysql_session_track_get_next(client_, SESSION_TRACK_SYSTEM_VARIABLES, &data, &size);
    if (left != 0) return;
    if (last_gtid) Note(data, size);
    left = mysql_session_track_get_next(client_, SESSION_TRACK_SYSTEM_VARIABLES, &data, &size);
  }
}

/// A change of another kind leaves the client what was reported to it last.
void Connection::Note(const char* data, std::size_t size) {
  if (told_ == std::string_view(data, size)) return;
  told_.assign(data, size);
  gtids_ = told_;
}

std::string Connection::TakeGtids() { return std::exchange(gtids_, {}); }

bool Connection::Usable() const {
  if (lost_) return false;
  pollfd idle{socket_, POLLIN, 0};
  return poll(&idle, 1, 0) == 0;
}

void Connection::Interrupt() { shutdown(socket_, SHUT_RDWR); }

}  // namespace antipode::mysql
