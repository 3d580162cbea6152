// The records of a dry run: lines of JSON, in a file of each process (specification, dry run).
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace antipode::dry_run {

/// The number of what is not written.
inline constexpr int kUnwritten = -1;

/// The file of this process. Thread-safe; a child process begins a file of its own.
class Records {
 public:
  /// Writes into a directory, which is made with the first record.
  Records(const std::string& directory, std::optional<std::string> region);
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  /// Writes one record, whole, before this returns; its number. `about` are its own fields, as members of an object of
  /// JSON. What cannot be written is counted, and said once.
  int Put(std::string_view kind, const std::string& about);
  /// Closes the file; nothing is written any more.
  void Close();

 private:
  /// Under the lock.
  void Open();
  bool Write(std::string_view kind, const std::string& about);
  [[nodiscard]] std::string Facts() const;

  std::string directory_;
  std::optional<std::string> region_;
  std::mutex lock_;
  std::string process_;
  pid_t pid_ = 0;  ///< Whose file it is.
  int file_ = -1;
  int next_ = 0;
  bool over_ = false;
};

}  // namespace antipode::dry_run
