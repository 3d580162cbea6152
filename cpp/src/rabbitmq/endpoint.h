// Judges by receipts: a check costs no round trip, and what is seen ends pauses.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "antipode/shim.h"
#include "rabbitmq/ledger.h"
#include "rabbitmq/tap.h"

namespace antipode::rabbitmq {

/// It is not pinned: a publication that this process received is visible though those before it may not be.
class ReceiptsEndpoint final : public Endpoint {
 public:
  /// Judges by a ledger, which a tap fills; without one consumers do.
  ReceiptsEndpoint(std::shared_ptr<Ledger> ledger, std::shared_ptr<Tap> tap)
      : ledger_(std::move(ledger)), tap_(std::move(tap)) {}

  Observation Observe(const std::set<WriteId>& writes, double timeout_s) override;
  Observation Promised(const std::set<Promise>& promises, double timeout_s) override;
  void Pause(double timeout_s, Wake& wake) override { ledger_->Pause(timeout_s, wake, changes_); }

 private:
  [[nodiscard]] Ledger::Said Explained(Ledger::Said said) const;
  [[nodiscard]] std::string Server() const;

  std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<Tap> tap_;
  std::uint64_t changes_ = 0;
};

}  // namespace antipode::rabbitmq
