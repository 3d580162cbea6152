// What the library's operations cost compared with opentelemetry-cpp's, with texts of the same length: five
// dependencies.
//
// Each operation has a bound: at most twice its baseline, or a microsecond more. The table at the end says so.
#include <benchmark/benchmark.h>
#include <opentelemetry/baggage/propagation/baggage_propagator.h>

#include <cstdio>
#include <map>
#include <string>

#include "allocations.h"
#include "antipode/opentelemetry.h"

namespace antipode::benchmarks {
namespace {

using opentelemetry::Baggage;
using opentelemetry::Context;
using opentelemetry::HeadersCarrier;
using opentelemetry::RuntimeContext;
using ::opentelemetry::baggage::GetBaggage;
using ::opentelemetry::baggage::SetBaggage;
using ::opentelemetry::baggage::propagation::BaggagePropagator;

constexpr std::uint64_t kHour = 490'000;
constexpr char kLog[] = "3e11fa47-71ca-11e1-9e33-c80aa942956";

WriteId Write(int n, std::uint64_t version) { return {"posts", kLog + std::to_string(n), version, kHour, false}; }

Lineage Five() {
  LineageParts parts;
  for (int n = 0; n < 5; ++n) parts.writes.push_back(Write(n, 1'000'000 + static_cast<std::uint64_t>(n)));
  return Lineage(parts);
}

std::string Text() { return Five().Serialize(); }
Headers Received(const std::string& member) { return {{"baggage", member + "=" + Text()}}; }
Context Plain() {
  Context empty;
  return SetBaggage(empty, Baggage::GetDefault()->Set("neighbor", Text()));
}

/// Measures `step`, and counts what it allocates.
template <typename Step>
void Run(benchmark::State& state, Step step) {
  const std::uint64_t before = Allocations();
  for (auto _ : state) step();
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(Allocations() - before), benchmark::Counter::kAvgIterations);
}

void SetAttachDetach(benchmark::State& state) {
  const std::string text = Text();
  Run(state, [&] {
    Context current = RuntimeContext::GetCurrent();
    const auto token = RuntimeContext::Attach(SetBaggage(current, GetBaggage(current)->Set("neighbor", text)));
    benchmark::DoNotOptimize(token.get());
  });
}

void Get(benchmark::State& state) {
  const Context context = Plain();
  Run(state, [&] {
    std::string value;
    benchmark::DoNotOptimize(GetBaggage(context)->GetValue("neighbor", value));
  });
}

void PlainInject(benchmark::State& state) {
  BaggagePropagator propagator;
  const Context context = Plain();
  Run(state, [&] {
    Headers headers;
    HeadersCarrier carrier(headers);
    propagator.Inject(carrier, context);
    benchmark::DoNotOptimize(headers.data());
  });
}

void PlainExtract(benchmark::State& state) {
  BaggagePropagator propagator;
  Headers headers = Received("neighbor");
  const HeadersCarrier carrier(headers);
  Run(state, [&] {
    Context context;
    context = propagator.Extract(carrier, context);
    benchmark::DoNotOptimize(&context);
  });
}

void Append(benchmark::State& state) {
  const ScopeGuard request(Five());
  std::uint64_t version = 2'000'000;
  const WriteId write = Write(0, 0);
  Run(state, [&] {
    WriteId next = write;
    next.version = ++version;
    benchmark::DoNotOptimize(antipode::Append(next));
  });
}

void Current(benchmark::State& state) {
  const ScopeGuard request(Five());
  Run(state, [&] { benchmark::DoNotOptimize(antipode::Current()); });
}

void Merge(benchmark::State& state) {
  LineageParts parts;
  for (int n = 0; n < 5; ++n) parts.writes.push_back(Write(n + 3, 3'000'000));
  const Lineage other(parts);
  const Lineage mine = Five();
  Run(state, [&] { benchmark::DoNotOptimize(mine.Merge(other)); });
}

void Encode(benchmark::State& state) {
  const Lineage lineage = Five();
  Run(state, [&] { benchmark::DoNotOptimize(Serialize(lineage)); });
}

void Decode(benchmark::State& state) {
  const std::string text = Text();
  Run(state, [&] { benchmark::DoNotOptimize(Lineage::Deserialize(text)); });
}

opentelemetry::Propagator Ours() {
  return opentelemetry::Propagator(
      ::opentelemetry::nostd::shared_ptr<opentelemetry::TextMapPropagator>(new BaggagePropagator()));
}

void Inject(benchmark::State& state) {
  auto propagator = Ours();
  const Context context = opentelemetry::WithScope(Context(), std::make_shared<Scope>(Five()));
  Run(state, [&] {
    Headers headers;
    HeadersCarrier carrier(headers);
    propagator.Inject(carrier, context);
    benchmark::DoNotOptimize(headers.data());
  });
}

void Extract(benchmark::State& state) {
  auto propagator = Ours();
  Headers headers = Received("antipode");
  const HeadersCarrier carrier(headers);
  Run(state, [&] {
    Context context;
    context = propagator.Extract(carrier, context);
    benchmark::DoNotOptimize(&context);
  });
}

struct Case {
  const char* operation;
  const char* floor_name;
  void (*ours)(benchmark::State&);
  void (*floor)(benchmark::State&);
};

constexpr Case kCases[] = {
    {"append", "set, attach, detach", Append, SetAttachDetach},
    {"current", "get", Current, Get},
    {"merge", "set, attach, detach", Merge, SetAttachDetach},
    {"encode", "inject", Encode, PlainInject},
    {"decode", "extract", Decode, PlainExtract},
    {"inject", "inject", Inject, PlainInject},
    {"extract", "extract", Extract, PlainExtract},
};

struct Figure {
  double ns = 0;
  double allocations = 0;
};

/// Keeps the medians, and writes them as the table that the README has.
class Table final : public benchmark::ConsoleReporter {
 public:
  Table() : ConsoleReporter(OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.aggregate_name != "median") continue;
      medians_[run.run_name.function_name] = {run.GetAdjustedCPUTime(), run.counters.at("allocations").value};
    }
  }

  void Finalize() override {
    std::puts("| operation | ns | allocations | compared with | ns | allocations | ratio | more ns | within bound |");
    std::puts("|---|---|---|---|---|---|---|---|---|");
    for (const Case& each : kCases) {
      const Figure ours = medians_[std::string(each.operation) + "/antipode"];
      const Figure floor = medians_[std::string(each.operation) + "/opentelemetry"];
      const bool within = ours.ns <= 2 * floor.ns || ours.ns <= floor.ns + 1'000;
      std::printf("| %s | %.0f | %.0f | %s | %.0f | %.0f | %.2f | %.0f | %s |\n", each.operation, ours.ns,
                  ours.allocations, each.floor_name, floor.ns, floor.allocations, ours.ns / floor.ns,
                  ours.ns - floor.ns, within ? "yes" : "no");
    }
  }

 private:
  std::map<std::string, Figure> medians_;
};

}  // namespace
}  // namespace antipode::benchmarks

int main(int argc, char** argv) {
  using antipode::benchmarks::kCases;
  benchmark::Initialize(&argc, argv);
  for (const auto& each : kCases) {
    const std::string operation = each.operation;
    benchmark::RegisterBenchmark((operation + "/opentelemetry").c_str(), each.floor)->Repetitions(9);
    benchmark::RegisterBenchmark((operation + "/antipode").c_str(), each.ours)->Repetitions(9);
  }
  antipode::benchmarks::Table table;
  benchmark::RunSpecifiedBenchmarks(&table);
}
