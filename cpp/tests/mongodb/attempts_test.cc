// What one call of a client came to, by the commands and replies of all its attempts.
#include "mongodb/attempts.h"

#include <gtest/gtest.h>

namespace antipode::mongodb {
namespace {

Doc Parsed(const std::string& json) {
  bson_t* parsed = bson_new_from_json(reinterpret_cast<const std::uint8_t*>(json.data()), -1, nullptr);
  Doc doc(*parsed);
  bson_destroy(parsed);
  return doc;
}

Doc Insert(int number) {
  return Parsed(
      R"({"insert": "notes", "lsid": {"id": {"$binary": {"base64": "AA==", "subType": "04"}}}, "txnNumber": )" +
      std::to_string(number) + "}");
}

/// Names the writes by what their replies say.
class AttemptsTest : public testing::Test, private Naming {
 protected:
  void Send(const Doc& command) {
    bson_iter_t first;
    bson_iter_init(&first, &command.bson());
    bson_iter_next(&first);
    attempts.Send(SentAs({command.bson(), bson_iter_key(&first), EffectOf(command.bson()), "posts.internal:27017"}));
  }
  void Answer(const std::string& reply) { attempts.Answered(Parsed(reply).bson()); }

  Attempts attempts{*this};

 private:
  std::optional<WriteId> Named(const Sent&, const bson_t& reply, bool majority) override {
    return WriteId{"posts", majority ? "rs" : "rs.1", static_cast<std::uint64_t>(*IntAt(reply, "at"))};
  }
};

TEST_F(AttemptsTest, ARepeatedWriteIsInNoDoubtOnceItIsAnswered) {
  Send(Insert(1));
  attempts.Lost();
  EXPECT_TRUE(attempts.Doubtful());
  Send(Insert(1));
  Answer(R"({"ok": 1, "n": 1, "at": 7})");
  EXPECT_FALSE(attempts.Doubtful());
  EXPECT_EQ(attempts.writes().at("rs.1").version, Version(std::uint64_t{7}));
}

TEST_F(AttemptsTest, AnotherBatchSaysNothingOfOneThatWasInterrupted) {
  Send(Insert(1));
  Answer(R"({"ok": 1, "n": 1, "at": 7, "writeErrors": [{"index": 1, "code": 11600}]})");
  Send(Insert(2));
  Answer(R"({"ok": 1, "n": 2, "at": 9})");
  EXPECT_TRUE(attempts.Doubtful());
  EXPECT_EQ(attempts.writes().at("rs.1").version, Version(std::uint64_t{9}));
}

TEST_F(AttemptsTest, ANotAcknowledgedWriteStaysInDoubt) {
  Send(Parsed(R"({"insert": "notes", "writeConcern": {"w": 0}})"));
  Answer(R"({"ok": 1})");
  Send(Insert(2));
  Answer(R"({"ok": 1, "n": 1, "at": 9})");
  EXPECT_TRUE(attempts.Doubtful());
}

TEST_F(AttemptsTest, AConcernThatWasNotMetIsThatOfThePrimaryAlone) {
  for (const char* error : {"", R"(, "writeConcernError": {"code": 64})"}) {
    Send(Parsed(R"({"delete": "notes", "writeConcern": {"w": "majority"}})"));
    Answer(std::string(R"({"ok": 1, "n": 1, "at": 3)") + error + "}");
  }
  EXPECT_EQ(attempts.writes().size(), 2U);
  EXPECT_FALSE(attempts.Doubtful());
}

TEST_F(AttemptsTest, WhatChangedNothingEntersNothing) {
  Send(Parsed(R"({"update": "notes"})"));
  Answer(R"({"ok": 1, "n": 0, "at": 3})");
  Send(Parsed(R"({"find": "notes"})"));
  attempts.Lost();
  EXPECT_TRUE(attempts.writes().empty());
  EXPECT_FALSE(attempts.Doubtful());
}

TEST_F(AttemptsTest, AWriteThatFailedMayHaveBeenHalfDone) {
  Send(Parsed(R"({"aggregate": "notes", "pipeline": [{"$out": "copies"}]})"));
  attempts.Refused(Parsed(R"({"ok": 0, "code": 1, "at": 5})").bson());
  EXPECT_EQ(attempts.writes().size(), 1U);
  Send(Parsed(R"({"insert": "notes"})"));
  attempts.Refused(Parsed(R"({"ok": 0, "code": 13})").bson());
  EXPECT_FALSE(attempts.Doubtful());
  attempts.Refused(Parsed(R"({"ok": 0, "code": 237})").bson());
  EXPECT_TRUE(attempts.Doubtful());
}

}  // namespace
}  // namespace antipode::mongodb
