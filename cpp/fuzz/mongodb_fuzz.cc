// Replies of MongoDB, as BSON: where the server stood, and the lineages in its documents.
#include "antipode/errors.h"
#include "holds.h"
#include "mongodb/beside.h"
#include "mongodb/position.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bson_t reply;
  if (antipode::fuzz::Text(data, size).empty() || !bson_init_static(&reply, data, size)) return 0;
  const auto value = antipode::mongodb::At(reply, "value");
  const auto beside = antipode::mongodb::At(reply, "_ap");
  antipode::fuzz::MustTravel(FoundBeside(antipode::mongodb::HolderOf(value), beside, "posts").first);
  antipode::fuzz::MustTravel(antipode::mongodb::Buried(reply, "posts"));
  antipode::mongodb::BirthOf(reply);
  antipode::mongodb::ToldBy(reply, "rs");
  try {
    antipode::mongodb::StateOfHello(reply);
  } catch (const antipode::ConfigurationError&) {  // It is no member of a replica set.
  }
  return 0;
}
