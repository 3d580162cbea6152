// The vectors that other files here replay are all that there are.
#include "vectors.h"

#include <unistd.h>

#include <fstream>

namespace antipode::vectors {
namespace {

namespace fs = std::filesystem;

using Kinds = std::set<std::string>;

TEST(Vectors, AreReadHereOrAreOfWhatThisLibraryLacks) {
  // Reports are Python's and Java's, the guard as a conversation and calls are Python's.
  Kinds lacking{"C1-calls/digests",       "C1-calls/headers",   "C1-calls/identities", "C1-calls/nested",
                "L3-headers/finding_ids", "L3-headers/records", "L4-guard/guards"};
#ifndef ANTIPODE_SESSION_KEYS
  lacking.insert("L3-headers/session_signatures");
#endif
  EXPECT_EQ(Unread(Root()), lacking);
}

void Write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << content;
}

TEST(Vectors, ThatNothingReadsAreNamed) {
  const fs::path root = fs::path(testing::TempDir()) / ("antipode-vectors-" + std::to_string(::getpid()));
  Write(root / "L5-live" / "pairs.json", R"({"valid": [{"name": "of no level"}]})");
  Write(root / "L1-codec" / "further.json", R"({"further": [{"name": "of no kind"}]})");
  Write(root / "L1-codec" / "empty.json", R"({"valid": []})");
  Write(root / "L1-codec" / "read.json", R"({"valid": [{"name": "of a kind"}]})");
  EXPECT_EQ(Unread(root), (Kinds{"L5-live/valid", "L1-codec/further", "L1-codec/empty.json"}));
  fs::remove_all(root);
}

}  // namespace
}  // namespace antipode::vectors
