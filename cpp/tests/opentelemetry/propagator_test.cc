// The scope of a request in OpenTelemetry's contexts, and its lineage together with the SDK's own propagators.
#include <opentelemetry/baggage/propagation/baggage_propagator.h>
#include <opentelemetry/context/propagation/composite_propagator.h>
#include <opentelemetry/trace/propagation/http_trace_context.h>

#include <map>
#include <thread>

#include "antipode/observer.h"
#include "antipode/opentelemetry.h"
#include "settings_guard.h"
#include "settings_json.h"
#include "vectors.h"

namespace antipode::opentelemetry {
namespace {

using ::opentelemetry::baggage::GetBaggage;
using ::opentelemetry::baggage::SetBaggage;
using ::opentelemetry::baggage::propagation::BaggagePropagator;
using ::opentelemetry::context::propagation::CompositePropagator;
using ::opentelemetry::trace::propagation::HttpTraceContext;
using vectors::Case;
using vectors::Json;

constexpr char kTraceParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const WriteId kWrite{"posts", "log", std::uint64_t{7}, 400'000};

nostd::shared_ptr<TextMapPropagator> Stock() {
  std::vector<std::unique_ptr<TextMapPropagator>> parts;
  parts.push_back(std::make_unique<HttpTraceContext>());
  parts.push_back(std::make_unique<BaggagePropagator>());
  return nostd::shared_ptr<TextMapPropagator>(new CompositePropagator(std::move(parts)));
}

/// Instrumented as a program is, and as it was before again afterwards.
class Instrumenting {
 public:
  Instrumenting() {
    GlobalTextMapPropagator::SetGlobalPropagator(Stock());
    Instrument();
  }
  ~Instrumenting() { Uninstrument(); }
  Instrumenting(const Instrumenting&) = delete;
  Instrumenting& operator=(const Instrumenting&) = delete;

 private:
  SettingsGuard settings_;
};

Context Extracted(Headers headers, Context into = {}) {
  return GlobalTextMapPropagator::GetGlobalPropagator()->Extract(HeadersCarrier(headers), into);
}

Headers Injected(const Context& context) {
  Headers headers;
  HeadersCarrier carrier(headers);
  GlobalTextMapPropagator::GetGlobalPropagator()->Inject(carrier, context);
  return headers;
}

std::string BaggageSent(const Context& context) {
  Headers headers = Injected(context);
  return std::string(HeadersCarrier(headers).Get("baggage"));
}

std::map<std::string, std::string> MembersOf(const Context& context) {
  std::map<std::string, std::string> members;
  GetBaggage(context)->GetAllEntries([&members](nostd::string_view key, nostd::string_view value) {
    members.emplace(std::string(key), std::string(value));
    return true;
  });
  return members;
}

TEST(Inject, SendsTheLineageOfTheMomentFromAnEarlyCopyOfTheContext) {
  const Instrumenting instrumenting;
  const Context early = Extracted({{"baggage", "tenant=acme,antipode=1~ka.5.k"}, {"traceparent", kTraceParent}});
  const auto token = RuntimeContext::Attach(early);
  RecordWrite(kWrite);
  const Headers headers = Injected(early);
  EXPECT_EQ(headers.size(), 2U);
  EXPECT_EQ(BaggageSent(early), "antipode=" + Current().Serialize() + ",tenant=acme");
  EXPECT_EQ(ScopeOf(early)->lineage().writes().size(), 2U);
  EXPECT_EQ(headers[0], std::make_pair(std::string("traceparent"), std::string(kTraceParent)));
}

TEST(Inject, SendsNothingOfOursOnceTheMemberIsRemovedOrTheBaggageCleared) {
  const Instrumenting instrumenting;
  Context request = Extracted({{"baggage", "tenant=acme,antipode=1~ka.5.k"}});
  EXPECT_EQ(BaggageSent(SetBaggage(request, GetBaggage(request)->Delete("antipode"))), "tenant=acme");
  EXPECT_TRUE(Injected(SetBaggage(request, Baggage::GetDefault())).empty());
  EXPECT_EQ(BaggageSent(SetBaggage(request, GetBaggage(request)->Set("user", "7"))),
            "antipode=1~ka.5.k,user=7,tenant=acme");
}

TEST(Inject, KeepsTheLineageWholeBesideMoreBaggageThanIsPassedOn) {
  const Instrumenting instrumenting;
  Context request = Extracted({{"baggage", "antipode=1~ka.5.k"}});
  auto baggage = GetBaggage(request);
  for (int n = 0; n < 100; ++n) baggage = baggage->Set("member" + std::to_string(n), std::string(200, 'x'));
  const std::string sent = BaggageSent(SetBaggage(request, baggage));
  EXPECT_LE(sent.size(), 8'192U);
  EXPECT_EQ(ScopeOf(Extracted({{"baggage", sent}}))->lineage(), ScopeOf(request)->lineage());
}

TEST(Inject, KeepsALineageThatTheHeaderHas) {
  const Instrumenting instrumenting;
  Headers headers = {{"baggage", "antipode=1~ka.5.handed-on"}};
  HeadersCarrier carrier(headers);
  const Context request = Extracted({{"baggage", "tenant=acme,antipode=1~ka.5.k"}});
  GlobalTextMapPropagator::GetGlobalPropagator()->Inject(carrier, request);
  EXPECT_EQ(std::string(carrier.Get("baggage")), "antipode=1~ka.5.handed-on~ka.5.k,tenant=acme");
}

TEST(Inject, OutsideOfARequestSendsNothingOfOurs) {
  const Instrumenting instrumenting;
  const ScopeGuard elsewhere(Lineage({kWrite}));
  EXPECT_TRUE(Injected(Context()).empty());
}

TEST(Baggage, HoldsASnapshotThatSaysSo) {
  const Instrumenting instrumenting;
  const Context request = Extracted({{"baggage", "antipode=1~ka.5.k"}});
  const Lineage copied = Lineage::Deserialize(MembersOf(request).at("antipode"));
  EXPECT_EQ(copied, Lineage::Deserialize("1~ka.5.k").Marked({"", "snapshot"}));
}

TEST(Attach, MakesTheScopeCurrentOnAnyThread) {
  const Instrumenting instrumenting;
  const Context request = Extracted({{"baggage", "antipode=1~ka.5.k"}});
  EXPECT_EQ(CurrentScope(), nullptr);
  {
    const auto token = RuntimeContext::Attach(request);
    std::thread([context = RuntimeContext::GetCurrent()] {
      EXPECT_EQ(CurrentScope(), nullptr);
      const auto handed = RuntimeContext::Attach(context);
      RecordWrite(kWrite);
    }).join();
    EXPECT_EQ(Current().writes().size(), 2U);
    const auto outside = RuntimeContext::Attach(Context("other", true));
    EXPECT_EQ(CurrentScope(), nullptr);
  }
  EXPECT_EQ(CurrentScope(), nullptr);
}

TEST(GetCurrent, HoldsTheScopeOfAGuard) {
  const Instrumenting instrumenting;
  const auto token = RuntimeContext::Attach(Extracted({{"baggage", "tenant=acme,antipode=1~ka.5.k"}}));
  const ScopeGuard message(Lineage({kWrite}));
  const Context context = RuntimeContext::GetCurrent();
  EXPECT_EQ(ScopeOf(context), message.scope());
  EXPECT_EQ(BaggageSent(context), "antipode=" + Current().Serialize() + ",tenant=acme");
}

TEST(Detach, OutOfOrderLeavesTheScopeCurrentWhoseTokenLives) {
  const Instrumenting instrumenting;
  auto first = RuntimeContext::Attach(Extracted({{"baggage", "antipode=1~ka.5.k"}}));
  const Context context = Extracted({{"baggage", "antipode=1~kb.7.k"}});
  auto second = RuntimeContext::Attach(context);
  first.reset();
  EXPECT_EQ(CurrentScope(), ScopeOf(context));
  EXPECT_EQ(ScopeOf(RuntimeContext::GetCurrent()), ScopeOf(context));
  second.reset();
  EXPECT_EQ(CurrentScope(), nullptr);
}

TEST(Extract, OfOneRequestTwiceJoinsItsScope) {
  const Instrumenting instrumenting;
  const Headers headers{{"baggage", "antipode=1~ka.5.k"}};
  const Context once = Extracted(headers);
  const Context twice = Extracted({{"baggage", "antipode=1~kb.7.k"}}, once);
  EXPECT_EQ(ScopeOf(once), ScopeOf(twice));
  EXPECT_NE(ScopeOf(once), ScopeOf(Extracted(headers)));
}

TEST(Instrument, IsIdempotentAndUndone) {
  const auto stock = Stock();
  GlobalTextMapPropagator::SetGlobalPropagator(stock);
  Instrument();
  const auto ours = GlobalTextMapPropagator::GetGlobalPropagator();
  Instrument();
  EXPECT_EQ(GlobalTextMapPropagator::GetGlobalPropagator().get(), ours.get());
  const Context context = Extracted({{"baggage", "antipode=1~ka.5.k"}});
  const auto token = RuntimeContext::Attach(context);
  Uninstrument();
  EXPECT_EQ(GlobalTextMapPropagator::GetGlobalPropagator().get(), stock.get());
  const auto other = RuntimeContext::Attach(Extracted({{"baggage", "antipode=1~kb.7.k"}}));
  EXPECT_EQ(CurrentScope(), ScopeOf(context));
}

TEST(Instrument, RefusesAPropagatorWithoutBaggage) {
  GlobalTextMapPropagator::SetGlobalPropagator(nostd::shared_ptr<TextMapPropagator>(new HttpTraceContext()));
  EXPECT_THROW(Instrument(), ConfigurationError);
}

Headers HeadersOf(const Json& found) {
  Headers headers;
  for (const Json& each : found) headers.emplace_back(each[0], each[1]);
  return headers;
}

class PropagatedRequests : public testing::TestWithParam<Case> {};

TEST_P(PropagatedRequests, StartFromWhatTheirHeadersSay) {
  const Instrumenting instrumenting;
  const Json& vector = GetParam().vector;
  const Context context = Extracted(HeadersOf(vector.at("headers")));
  EXPECT_EQ(ScopeOf(context)->lineage(), json::LineageOf(vector.at("lineage")));
  if (!vector.contains("others")) return;
  auto members = MembersOf(context);
  members.erase("antipode");
  EXPECT_EQ(Json(members),
            vector.at("others").empty() ? Json(std::map<std::string, std::string>()) : vector.at("others"));
}

INSTANTIATE_TEST_SUITE_P(OpenTelemetry, PropagatedRequests,
                         testing::ValuesIn(vectors::Cases("L3-headers", "requests_in")), vectors::NameOf);

class PropagatedAnswers : public testing::TestWithParam<Case> {};

TEST_P(PropagatedAnswers, BringBackWhatTheRequestAdded) {
  const Instrumenting instrumenting;
  const Json& vector = GetParam().vector;
  const auto scope = ScopeOf(Extracted(HeadersOf(vector.at("headers"))));
  for (const Json& write : vector.at("adds")) scope->Merge(Lineage({json::WriteOf(write)}));
  const auto answer = AnswerOf(*scope);
  EXPECT_EQ(answer ? Json(*answer) : Json(), vector.at("answer"));
}

INSTANTIATE_TEST_SUITE_P(OpenTelemetry, PropagatedAnswers,
                         testing::ValuesIn(vectors::Cases("L3-headers", "responses_out")), vectors::NameOf);

/// What calls carry whose headers had no lineage of their own, to hosts that may get one.
std::vector<Case> Sent() {
  std::vector<Case> cases;
  for (const Case& one : vectors::Cases("L3-headers", "calls")) {
    const Json& call = one.vector.at("calls")[0];
    const bool lineage = call.at("headers").dump().find("antipode") != std::string::npos;
    if (!lineage && !one.vector.value("settings", Json::object()).contains("egress_hosts")) cases.push_back(one);
  }
  return cases;
}

class PropagatedCalls : public testing::TestWithParam<Case> {};

TEST_P(PropagatedCalls, CarryTheLineageBeforeTheMembersOfOthers) {
  const Instrumenting instrumenting;
  const Json& vector = GetParam().vector;
  Configure(json::SettingsOf(vector.value("settings", Json::object()), Settings()));
  Headers given = HeadersOf(vector.at("calls")[0].at("headers"));
  Headers sent = HeadersOf(vector.at("calls")[0].at("sent"));
  Context context = WithScope(Context(), std::make_shared<Scope>(json::LineageOf(vector.at("scope"))));
  // Member by member, the last one first: `FromHeader` drops long ones.
  const std::string header(HeadersCarrier(given).Get("baggage"));
  auto baggage = GetBaggage(context);
  for (std::size_t end = header.size(); end > 0;) {
    const std::size_t comma = header.rfind(',', end - 1);
    const std::size_t begin = comma == std::string::npos ? 0 : comma + 1;
    const std::string member = header.substr(begin, end - begin);
    baggage = baggage->Set(member.substr(0, member.find('=')), member.substr(member.find('=') + 1));
    end = begin == 0 ? 0 : begin - 1;
  }
  EXPECT_EQ(BaggageSent(SetBaggage(context, baggage)), std::string(HeadersCarrier(sent).Get("baggage")));
}

INSTANTIATE_TEST_SUITE_P(OpenTelemetry, PropagatedCalls, testing::ValuesIn(Sent()), vectors::NameOf);

class PropagatedScopes : public testing::TestWithParam<Case> {};

TEST_P(PropagatedScopes, AreOpenEndedOrStoppedInContexts) {
  const Instrumenting instrumenting;
  std::vector<nostd::unique_ptr<Token>> tokens;
  for (const Json& step : GetParam().vector.at("steps")) {
    const std::string op = step.at("op");
    if (op == "extract") {
      tokens.push_back(RuntimeContext::Attach(Extracted(HeadersOf(step.at("headers")), RuntimeContext::GetCurrent())));
    } else if (op == "write") {
      CurrentScope()->Merge(Lineage({json::WriteOf(step.at("write"))}));
    } else if (op == "mark") {
      MarkIncomplete(step.at("subject").get<std::string>(), step.at("reason").get<std::string>());
    } else if (op == "answered") {
      ExtractResponse({{"Antipode-Lineage", step.at("text")}}, "", CurrentScope().get());
    } else if (op == "end") {
      CurrentScope()->End();
    } else if (op == "stop") {
      Stop();
    } else {
      EXPECT_EQ(ScopeOf(RuntimeContext::GetCurrent())->lineage(), json::LineageOf(step.at("lineage")));
    }
  }
  while (!tokens.empty()) tokens.pop_back();
}

INSTANTIATE_TEST_SUITE_P(OpenTelemetry, PropagatedScopes, testing::ValuesIn(vectors::Cases("L3-headers", "scopes")),
                         vectors::NameOf);

}  // namespace
}  // namespace antipode::opentelemetry
