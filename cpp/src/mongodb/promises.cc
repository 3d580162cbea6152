#include "mongodb/promises.h"

#include <string>

#include "antipode/clock.h"
#include "antipode/shim.h"

namespace antipode::mongodb {
namespace {

constexpr const char* kCollection = "antipode_promises";

}  // namespace

Doc Recording(const Promise& promise, bool fulfilled) {
  const auto until_ms =
      (static_cast<std::int64_t>(SystemClock().UnixSeconds()) + static_cast<std::int64_t>(RecordSeconds(promise))) *
      1'000;
  const Doc found = Doc().Add("_id", promise.id).Add("fulfilled", fulfilled);
  const Doc change = Only("$setOnInsert", Only("until", Date{until_ms}));
  const Doc update = Doc().Add("q", found).Add("u", change).Add("upsert", true);
  return Doc().Add("update", kCollection).Add("updates", List(update));
}

Doc SearchRecords(const std::set<Promise>& promises) {
  Array ids;
  for (const Promise& each : promises) ids.Add(each.id);
  return Doc()
      .Add("find", kCollection)
      .Add("filter", Only("_id", Only("$in", ids)))
      .Add("projection", Only("fulfilled", 1))
      .Add("batchSize", static_cast<int>(promises.size()))
      .Add("singleBatch", true);
}

std::map<Promise, Status> RecordsIn(const bson_t& reply, const std::set<Promise>& promises) {
  std::map<std::string, Status> records;
  for (int nth = 0;; ++nth) {
    const std::string at = "cursor.firstBatch." + std::to_string(nth) + ".";
    const auto id = TextAt(reply, (at + "_id").c_str());
    if (!id) break;
    records[*id] = TrueAt(reply, (at + "fulfilled").c_str()) ? Status::kVisible : Status::kAbandoned;
  }
  std::map<Promise, Status> found;
  for (const Promise& each : promises) {
    const auto record = records.find(each.id);
    if (record != records.end()) found[each] = record->second;
  }
  return found;
}

}  // namespace antipode::mongodb
