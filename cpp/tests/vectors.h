// Reads the vectors of tests/conformance, which are the same for every language.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "json.h"

namespace antipode::vectors {

using json::Json;

/// One vector.
struct Case {
  std::string name;   ///< The name of its test.
  std::string where;  ///< Its level, file, kind and name, as reports have them.
  std::string kind;
  std::string store;  ///< What its file is about; empty where that is no store.
  Json vector;
};

inline std::ostream& operator<<(std::ostream& stream, const Case& one) { return stream << one.where; }

/// Where the vectors are: ANTIPODE_VECTORS of the environment, or those of this tree.
std::filesystem::path Root();

/// The vectors under `kind` in all files of a level, which is a folder.
std::vector<Case> Cases(const std::string& level, const std::string& kind);
/// The vectors of all kinds in all files of a level.
std::vector<Case> Cases(const std::string& level);

/// What no call of `Cases` asked for of the vectors under a folder: levels and kinds, and files without any vector.
std::set<std::string> Unread(const std::filesystem::path& root);

/// The text of a vector, which may be built of repeated strings.
std::string TextOf(const Json& vector);

/// Without mint hours: what is recorded states the present one, which no vector can know.
Lineage Hourless(const Lineage& lineage);

/// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOf(const testing::TestParamInfo<Case>& one) { return one.param.name; }

}  // namespace antipode::vectors
