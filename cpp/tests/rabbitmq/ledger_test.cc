// What receipts make of questions and reports of many threads. What they say is in the vectors of S1.
#include "rabbitmq/ledger.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "antipode/clock.h"
#include "rabbitmq/publisher.h"
#include "told_clock.h"

namespace antipode::rabbitmq {
namespace {

constexpr double kLongS = 60;

WriteId Publication(const std::string& publisher, std::uint64_t number) { return {"news", publisher, number}; }

TEST(Ledger, PausesEndAtOnceWhenSomethingIsHeard) {
  Ledger ledger(5, SystemClock());
  Wake wake;
  std::promise<void> asked;
  auto paused = std::async(std::launch::async, [&] {
    const std::uint64_t changes = ledger.Changes();
    asked.set_value();
    ledger.Pause(kLongS, wake, changes);  // At once, also where the news comes first.
  });
  asked.get_future().wait();
  ledger.See(Publication("publisher", 1));
  EXPECT_EQ(paused.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(Ledger, WhatManyThreadsSeeIsSeen) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kEach = 500;
  Ledger ledger(5, SystemClock());
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n) {
    threads.emplace_back([&ledger, n] {
      for (std::uint64_t number = 1; number <= kEach; ++number) {
        ledger.See(Publication("of all", number));
        ledger.See(Publication(std::to_string(n), number));
        ledger.Judge(Publication("of all", kEach));
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(ledger.Judge(Publication("of all", kEach)).status, Status::kVisible);
  for (int n = 0; n < kThreads; ++n) {
    EXPECT_EQ(ledger.Judge(Publication(std::to_string(n), kEach)).status, Status::kVisible);
  }
}

TEST(Ledger, ForgetsThePublisherHeardFirstAndNeverShowsIt) {
  constexpr int kMore = 5'000;
  constexpr std::uint64_t kBornMs = 1'500'000;  // While it listened: one that was never heard may still be.
  ToldClock clock(1'000);
  Ledger ledger(5, clock);
  clock.now_s = 2'000;
  std::vector<std::string> publishers;
  for (int n = 0; n < kMore; ++n) {
    publishers.push_back(NewPublisher(kBornMs));
    ledger.See(Publication(publishers.back(), 1));
  }
  EXPECT_EQ(ledger.Judge(Publication(publishers.front(), 1)).status, Status::kUnknownLog);
  EXPECT_EQ(ledger.Judge(Publication(publishers.back(), 1)).status, Status::kVisible);
}

}  // namespace
}  // namespace antipode::rabbitmq
