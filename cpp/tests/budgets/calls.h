// What the library adds to one call, a line of JSON each: tests/budgets/test_cpp.py reads them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace antipode::budgets {

using Call = std::function<void()>;
/// By client: the release.
using Drivers = std::map<std::string, std::string>;
/// What follows the store's name in the program's arguments.
using Words = std::vector<std::string>;

/// What every store's shim is called.
inline constexpr const char* kDatastore = "posts";

/// Prints what our call adds to the plain one, each in the scope of a request.
void Compare(const std::string& line, const Drivers& drivers, const Call& ours, const Call& plain);
/// Prints what a call of the library itself comes to, in no request.
void InProcess(const std::string& line, const Call& call, const Drivers& drivers = {});

void CountCore(const Words& words);
/// The primary as `host:port`.
void CountMongoDb(const Words& words);
/// The primary as `host:port`, a user, the password and a database.
void CountMySql(const Words& words);
/// The broker as `host:port`.
void CountRabbitMq(const Words& words);
/// The primary as `host:port`.
void CountRedis(const Words& words);

}  // namespace antipode::budgets
