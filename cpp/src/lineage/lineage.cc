#include "antipode/lineage.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lineage/codec.h"
#include "lineage/data.h"
#include "lineage/grammar.h"
#include "lineage/promise_name.h"

namespace antipode {
namespace {

void Require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

void Check(const WriteId& write) {
  Require(!write.datastore.empty(), "a write has no datastore");
  const auto* opaque = std::get_if<std::string>(&write.version);
  Require(grammar::IsUtf8(write.datastore) && grammar::IsUtf8(write.key) && (!opaque || grammar::IsUtf8(*opaque)),
          "a text of a write is not UTF-8");
  Require(write.written_hour <= kMaxHour, "a written hour is over 36^5 - 1");
}

void Check(const Promise& promise) {
  Require(!promise.datastore.empty(), "a promise has no datastore");
  Require(grammar::IsUtf8(promise.datastore), "the datastore of a promise is not UTF-8");
  const auto id = grammar::ParseHex(promise.id);
  Require(id && id->size() == 16, "the id of a promise is not 32 lower-case hexadecimal digits");
  Require(promise.expires_s <= kMaxExpiry, "the expiry of a promise is over 36^8 - 1");
}

void Check(const Incomplete& mark) {
  Require(grammar::IsUtf8(mark.subject) && grammar::IsUtf8(mark.reason), "a text of a mark is not UTF-8");
}

Slot SlotOf(const WriteId& write) {
  const auto* opaque = std::get_if<std::string>(&write.version);
  return {write.datastore, write.key, opaque ? std::optional(*opaque) : std::nullopt};
}

/// Keeps the larger version, and of equal ones the newer hour.
template <typename Added>
void Keep(std::optional<Entry>& held, Added&& added) {
  if (!held) {
    held = std::forward<Added>(added);
    return;
  }
  const auto rank = [](const Entry& e) { return std::tie(e.write.version, e.write.written_hour); };
  if (rank(*held) == rank(added)) {
    held->recorded = held->recorded || added.recorded;
  } else if (rank(*held) < rank(added)) {
    held = std::forward<Added>(added);
  }
}

void Normalise(Kept& kept) {
  if (kept.exact && kept.covering && !(kept.exact->write.version < kept.covering->write.version)) {
    kept.covering.reset();
  }
}

}  // namespace

void Lineage::Data::Add(Entry entry) {
  Kept& kept = slots[SlotOf(entry.write)];
  Keep(entry.write.covering ? kept.covering : kept.exact, std::move(entry));
  Normalise(kept);
}

void Lineage::Data::Add(const Promise& promise) {
  std::uint64_t& expires_s = promises[{promise.datastore, promise.id}];
  expires_s = std::max(expires_s, promise.expires_s);
}

void Lineage::Data::Add(const Data& other) {
  for (const auto& [slot, theirs] : other.slots) {
    Kept& kept = slots[slot];
    if (theirs.exact) Keep(kept.exact, *theirs.exact);
    if (theirs.covering) Keep(kept.covering, *theirs.covering);
    Normalise(kept);
  }
  incomplete.insert(other.incomplete.begin(), other.incomplete.end());
  for (const Promise& promise : other.Promises()) Add(promise);
  open_branches = std::max(open_branches, other.open_branches);
  unknown.insert(other.unknown.begin(), other.unknown.end());
}

std::size_t Lineage::Data::MostItems() const {
  return 2 * slots.size() + incomplete.size() + promises.size() + unknown.size() + 1;
}

std::vector<Entry> Lineage::Data::Entries() const {
  std::vector<Entry> entries;
  entries.reserve(slots.size());
  for (const auto& [slot, kept] : slots) {
    if (kept.exact) entries.push_back(*kept.exact);
    if (kept.covering) entries.push_back(*kept.covering);
  }
  return entries;
}

std::vector<Promise> Lineage::Data::Promises() const {
  std::vector<Promise> found;
  found.reserve(promises.size());
  for (const auto& [name, expires_s] : promises) found.push_back({name.first, name.second, expires_s});
  return found;
}

Lineage::Lineage() {
  static const auto& kEmpty = *new std::shared_ptr<const Data>(std::make_shared<const Data>());
  data_ = kEmpty;
}

Lineage::Lineage(std::shared_ptr<const Data> data) noexcept : data_(std::move(data)) {}

Lineage::Lineage(const LineageParts& parts) {
  auto data = std::make_shared<Data>();
  for (const WriteId& write : parts.writes) {
    Check(write);
    data->Add({write, true});
  }
  for (const Incomplete& mark : parts.incomplete) {
    Check(mark);
    data->incomplete.insert(mark);
  }
  for (const Promise& promise : parts.promises) {
    Check(promise);
    data->Add(promise);
  }
  for (const std::string& item : parts.unknown) {
    Require(codec::IsUnknownItem(item), "an unknown item is none");
    data->unknown.insert(item);
  }
  data->open_branches = parts.open_branches;
  data_ = std::move(data);
}

Lineage::Lineage(std::initializer_list<WriteId> writes) : Lineage(LineageParts{writes, {}, {}, 0, {}}) {}

std::optional<Lineage> Lineage::TryDeserialize(std::string_view text, DecodeFault* fault) {
  auto found = codec::Decode(text);
  if (auto* why = std::get_if<DecodeFault>(&found)) {
    if (fault != nullptr) *fault = std::move(*why);
    return std::nullopt;
  }
  return Lineage(std::make_shared<const Data>(std::move(std::get<Data>(found))));
}

Lineage Lineage::Deserialize(std::string_view text) {
  DecodeFault fault;
  if (auto lineage = TryDeserialize(text, &fault)) return *std::move(lineage);
  throw LineageDecodeError(fault);
}

std::string Lineage::Serialize() const { return codec::Encode(*data_); }

Lineage Lineage::Append(const WriteId& write) const {
  Check(write);
  auto data = std::make_shared<Data>(*data_);
  data->Add({write, true});
  return Lineage(std::move(data));
}

Lineage Lineage::Remove(const WriteId& write) const {
  const auto slot = data_->slots.find(SlotOf(write));
  if (slot == data_->slots.end()) return *this;
  auto data = std::make_shared<Data>(*data_);
  Kept& kept = data->slots[slot->first];
  for (auto* each : {&kept.exact, &kept.covering}) {
    if (*each && (*each)->write.version == write.version) each->reset();
  }
  if (!kept.exact && !kept.covering) data->slots.erase(slot->first);
  return Lineage(std::move(data));
}

Lineage Lineage::Merge(const Lineage& other) const {
  if (empty() || other.data_ == data_) return other;
  if (other.empty()) return *this;
  auto data = std::make_shared<Data>(*data_);
  data->Add(*other.data_);
  return Lineage(std::move(data));
}

Lineage Lineage::Only(const std::set<std::string>& datastores) const {
  auto data = std::make_shared<Data>();
  const auto named = [&datastores](const std::string& name) { return datastores.count(name) != 0; };
  for (const auto& [slot, kept] : data_->slots) {
    if (named(std::get<0>(slot))) data->slots.emplace(slot, kept);
  }
  for (const auto& promise : data_->promises) {
    if (named(promise.first.first)) data->promises.insert(promise);
  }
  for (const Incomplete& mark : data_->incomplete) {
    if (mark.subject.empty() || named(mark.subject)) data->incomplete.insert(mark);
  }
  data->open_branches = data_->open_branches;
  data->unknown = data_->unknown;
  return Lineage(std::move(data));
}

Lineage Lineage::Beyond(const Lineage& came) const {
  auto data = std::make_shared<Data>();
  const auto theirs = came.writes();
  const std::set<WriteId> sent(theirs.begin(), theirs.end());
  for (const Entry& entry : data_->Entries()) {
    if (sent.count(entry.write) == 0) data->Add(entry);
  }
  for (const auto& [name, expires_s] : data_->promises) {
    const auto held = came.data_->promises.find(name);
    if (held == came.data_->promises.end() || held->second < expires_s) data->promises.emplace(name, expires_s);
  }
  for (const Incomplete& mark : data_->incomplete) {
    if (came.incomplete().count(mark) == 0) data->incomplete.insert(mark);
  }
  for (const std::string& item : data_->unknown) {
    if (came.unknown().count(item) == 0) data->unknown.insert(item);
  }
  if (data_->open_branches > came.open_branches()) data->open_branches = data_->open_branches;
  return Lineage(std::move(data));
}

Lineage Lineage::WithoutPromises(const std::set<std::string>& ids) const {
  auto data = std::make_shared<Data>(*data_);
  for (auto each = data->promises.begin(); each != data->promises.end();) {
    each = ids.count(PromiseName(each->first.first, each->first.second)) != 0 ? data->promises.erase(each)
                                                                              : std::next(each);
  }
  return Lineage(std::move(data));
}

Lineage Lineage::WithoutNotes() const {
  // As those of dry runs and of recorders of histories begin (dry-run.md).
  const auto is_note = [](const std::string& item) {
    return item.size() > 1 && item[0] == '0' && std::string_view("ghmrv").find(item[1]) != std::string_view::npos;
  };
  if (std::none_of(data_->unknown.begin(), data_->unknown.end(), is_note)) return *this;
  auto data = std::make_shared<Data>(*data_);
  for (auto each = data->unknown.begin(); each != data->unknown.end();) {
    each = is_note(*each) ? data->unknown.erase(each) : std::next(each);
  }
  return Lineage(std::move(data));
}

Lineage Lineage::Marked(const Incomplete& mark) const {
  Check(mark);
  auto data = std::make_shared<Data>(*data_);
  data->incomplete.insert(mark);
  return Lineage(std::move(data));
}

Lineage Lineage::Received(std::uint64_t now_h, std::uint64_t latest_s) const {
  const auto later = [latest_s](const auto& promise) { return promise.second > latest_s; };
  if (codec::NewestHour(*data_) <= now_h && std::none_of(data_->promises.begin(), data_->promises.end(), later)) {
    return *this;
  }
  auto data = std::make_shared<Data>(*data_);
  data->slots.clear();
  for (Entry& entry : data_->Entries()) {
    entry.write.written_hour = std::min(entry.write.written_hour, now_h);
    data->Add(entry);
  }
  for (auto& [name, expires_s] : data->promises) expires_s = std::min(expires_s, latest_s);
  return Lineage(std::move(data));
}

std::vector<WriteId> Lineage::writes() const {
  std::vector<WriteId> writes;
  for (Entry& entry : data_->Entries()) writes.push_back(std::move(entry.write));
  return writes;
}

const std::set<Incomplete>& Lineage::incomplete() const noexcept { return data_->incomplete; }
std::vector<Promise> Lineage::promises() const { return data_->Promises(); }
std::uint64_t Lineage::open_branches() const noexcept { return data_->open_branches; }
const std::set<std::string>& Lineage::unknown() const noexcept { return data_->unknown; }

bool Lineage::empty() const noexcept {
  return data_->slots.empty() && data_->incomplete.empty() && data_->promises.empty() && data_->open_branches == 0 &&
         data_->unknown.empty();
}

bool operator==(const Lineage& a, const Lineage& b) {
  return a.data_ == b.data_ ||
         (a.writes() == b.writes() && a.incomplete() == b.incomplete() && a.data_->promises == b.data_->promises &&
          a.open_branches() == b.open_branches() && a.unknown() == b.unknown());
}

}  // namespace antipode
