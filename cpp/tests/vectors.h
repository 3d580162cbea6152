// Reads the vectors of tests/conformance, which are the same for every language.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "json.h"

namespace antipode::vectors {

using json::Json;

/// One vector, and the name of its test.
struct Case {
  std::string name;
  Json vector;
};

inline std::ostream& operator<<(std::ostream& stream, const Case& one) { return stream << one.name; }

/// The vectors under `kind` in all files of a folder.
std::vector<Case> Cases(const std::string& folder, const std::string& kind);

/// What kinds of vectors the files of a folder have.
std::set<std::string> Kinds(const std::string& folder);

/// What has no names.
std::vector<Json> Entries(const std::string& folder, const std::string& kind);

/// The text of a vector, which may be built of repeated strings.
std::string TextOf(const Json& vector);

/// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOf(const testing::TestParamInfo<Case>& one) { return one.param.name; }

}  // namespace antipode::vectors
