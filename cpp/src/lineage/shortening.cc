// As much of a lineage as fits where there is a bound (specification, bounded text and receiving).
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lineage/codec.h"
#include "lineage/data.h"
#include "lineage/grammar.h"

namespace antipode {
namespace {

constexpr std::string_view kNothingFits = "1~isize.-";
constexpr std::size_t kMostMarks = 1'024;
/// What a scope holds, and what it is shortened to where it would hold more.
constexpr std::size_t kHeldItems = 4'096;
constexpr std::size_t kHeldAgain = 3'072;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// CRC-32 of zlib and Ethernet.
std::uint32_t Crc32(std::string_view text) {
  std::uint32_t crc = 0xFFFF'FFFFU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB8'8320U : 0U);
  }
  return ~crc;
}

/// What of `data` may leave.
Lineage::Data AllowedOf(const Lineage::Data& data, const std::set<std::string>& egress) {
  Lineage::Data left;
  bool lost = false;
  const auto may = [&](const std::string& name) {
    const bool listed = egress.count(name) != 0;
    lost = lost || !listed;
    return listed;
  };
  for (const auto& [slot, kept] : data.slots) {
    if (may(std::get<0>(slot))) left.slots.emplace(slot, kept);
  }
  for (const auto& promise : data.promises) {
    if (may(promise.first.first)) left.promises.insert(promise);
  }
  for (const Incomplete& mark : data.incomplete) {
    if (mark.subject.empty() || may(mark.subject)) left.incomplete.insert(mark);
  }
  left.open_branches = data.open_branches;
  lost = lost || std::any_of(data.unknown.begin(), data.unknown.end(),
                             [](const std::string& item) { return !IsDigit(item[0]); });
  if (lost) left.incomplete.insert({"", std::string(kEgress)});
  return left;
}

/// A write that may be dropped, in the order in which it is: the first goes first.
struct Droppable {
  Entry entry;
  std::string item;
  std::uint32_t crc = 0;
  std::size_t turn = 0;  ///< Its number among its datastore's that are alike in all else.

  [[nodiscard]] auto Group() const {
    return std::make_tuple(!entry.write.covering, entry.recorded, entry.write.written_hour);
  }
};

std::vector<Droppable> InOrder(const std::vector<Entry>& entries, std::uint64_t newest_h) {
  std::vector<Droppable> all;
  for (const Entry& entry : entries) {
    std::string item = codec::Item(entry.write, newest_h);
    const std::uint32_t crc = Crc32(item);
    all.push_back({entry, std::move(item), crc, 0});
  }
  std::sort(all.begin(), all.end(), [](const Droppable& a, const Droppable& b) {
    return std::make_tuple(a.Group(), a.entry.write.datastore, a.crc, a.item) <
           std::make_tuple(b.Group(), b.entry.write.datastore, b.crc, b.item);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    const bool same =
        all[i].Group() == all[i - 1].Group() && all[i].entry.write.datastore == all[i - 1].entry.write.datastore;
    all[i].turn = same ? all[i - 1].turn + 1 : 0;
  }
  std::sort(all.begin(), all.end(), [](const Droppable& a, const Droppable& b) {
    if (a.Group() != b.Group()) return a.Group() < b.Group();
    return std::tie(b.turn, b.crc, b.item) < std::tie(a.turn, a.crc, a.item);
  });
  return all;
}

/// How much may stay: so many characters and items, and of marks so many characters and so many marks.
struct Room {
  std::size_t characters;
  std::size_t items;
  std::size_t mark_characters;
  std::size_t marks;
};

/// Drops items until the rest fits.
class Shortening {
 public:
  Shortening(Lineage::Data data, const Room& room)
      : data_(std::move(data)), newest_h_(codec::NewestHour(data_)), room_(room) {
    size_ = codec::Header(newest_h_).size();
    for (const std::string& item : data_.unknown) Count(item.size());
    for (const Entry& entry : data_.Entries()) Count(codec::Item(entry.write, newest_h_).size());
    for (const Promise& promise : data_.Promises()) Count(codec::Item(promise).size());
    for (const Incomplete& mark : data_.incomplete) CountMark(mark);
    if (data_.open_branches != 0) Count(codec::OpenItem(data_.open_branches).size());
  }

  /// What fits, or none where nothing does.
  std::optional<Lineage::Data> Shortened() {
    DropUnknown(true);
    DropUnknown(false);
    DropWrites();
    DropPromises();
    if (!Fits()) MergeMarks();
    if (!Fits()) return std::nullopt;
    return std::move(data_);
  }

 private:
  [[nodiscard]] bool Fits() const { return size_ <= room_.characters && items_ <= room_.items; }

  void Count(std::size_t length) {
    size_ += length + 1;
    ++items_;
  }

  void Discount(std::size_t length) {
    size_ -= length + 1;
    --items_;
  }

  void CountMark(const Incomplete& mark) {
    const std::size_t length = codec::Item(mark).size();
    Count(length);
    marks_size_ += length + 1;
  }

  void Mark(const std::string& subject, std::string_view reason) {
    const Incomplete mark{merged_ ? "" : subject, std::string(reason)};
    if (data_.incomplete.insert(mark).second) CountMark(mark);
  }

  /// Replaces all marks by those of the empty subject, once they take more room than they may.
  void MergeMarks() {
    if (merged_ || (marks_size_ <= room_.mark_characters && data_.incomplete.size() <= room_.marks)) return;
    merged_ = true;
    const auto marks = std::exchange(data_.incomplete, {});
    for (const Incomplete& mark : marks) Discount(codec::Item(mark).size());
    marks_size_ = 0;
    for (const Incomplete& mark : marks) Mark("", mark.reason);
  }

  /// Whether something has to go; before any dependency does, the marks make room.
  bool MustDrop() {
    if (!Fits()) MergeMarks();
    return !Fits();
  }

  void DropUnknown(bool digits) {
    for (auto item = data_.unknown.end(); item != data_.unknown.begin();) {
      --item;
      if (IsDigit((*item)[0]) != digits) continue;
      if (digits ? Fits() : !MustDrop()) return;
      Discount(item->size());
      item = data_.unknown.erase(item);
      if (!digits) Mark("", kSize);
    }
  }

  void DropWrites() {
    if (Fits()) return;
    for (const Droppable& each : InOrder(data_.Entries(), newest_h_)) {
      if (!MustDrop()) return;
      Discount(each.item.size());
      Erase(each.entry.write);
      Mark(each.entry.write.datastore, kSize);
    }
  }

  void Erase(const WriteId& write) {
    const auto* opaque = std::get_if<std::string>(&write.version);
    const Slot slot{write.datastore, write.key, opaque ? std::optional(*opaque) : std::nullopt};
    Kept& kept = data_.slots[slot];
    (write.covering ? kept.covering : kept.exact).reset();
    if (!kept.exact && !kept.covering) data_.slots.erase(slot);
  }

  void DropPromises() {
    std::map<std::string, Promise> items;
    for (const Promise& promise : data_.Promises()) items.emplace(codec::Item(promise), promise);
    for (auto each = items.rbegin(); each != items.rend(); ++each) {
      if (!MustDrop()) return;
      Discount(each->first.size());
      data_.promises.erase({each->second.datastore, each->second.id});
      Mark(each->second.datastore, kPromise);
    }
  }

  Lineage::Data data_;
  std::uint64_t newest_h_;
  Room room_;
  std::size_t size_ = 0;
  std::size_t items_ = 0;
  std::size_t marks_size_ = 0;
  bool merged_ = false;
};

}  // namespace

std::string Lineage::Serialize(const Bound& bound, bool* whole) const {
  if (bound.max_bytes < grammar::kMemberBytes) throw LineageTooLarge(bound.max_bytes);
  const std::size_t bytes = std::min(bound.max_bytes - grammar::kMemberBytes, grammar::kMaxCharacters);
  if (whole != nullptr) *whole = false;
  if (!bound.egress && bound.notes.empty() && data_->MostItems() <= grammar::kMaxItems) {
    std::string text = codec::Encode(*data_);
    if (text.size() <= bytes) {
      if (whole != nullptr) *whole = true;
      return text;
    }
  }
  Data allowed = bound.egress ? AllowedOf(*data_, *bound.egress) : *data_;
  allowed.unknown.insert(bound.notes.begin(), bound.notes.end());
  const Room room{bytes, grammar::kMaxItems, bytes / 4, kMostMarks};
  if (const auto shortened = Shortening(std::move(allowed), room).Shortened()) return codec::Encode(*shortened);
  if (kNothingFits.size() > bytes) throw LineageTooLarge(bound.max_bytes);
  return std::string(kNothingFits);
}

Lineage Lineage::Allowed(const std::set<std::string>& egress) const {
  return Lineage(std::make_shared<const Data>(AllowedOf(*data_, egress)));
}

Lineage Lineage::Holdable() const {
  if (data_->MostItems() <= kHeldItems) return *this;
  const std::size_t items =
      data_->Entries().size() + data_->incomplete.size() + data_->promises.size() + data_->unknown.size();
  if (items <= kHeldItems) return *this;
  Data held = *data_;
  const std::uint64_t open_branches = std::exchange(held.open_branches, 0);
  auto shortened = Shortening(std::move(held), {SIZE_MAX, kHeldAgain, SIZE_MAX, kHeldAgain / 4}).Shortened();
  if (!shortened) return Lineage().Marked({"", std::string(kSize)});
  shortened->open_branches = open_branches;
  return Lineage(std::make_shared<const Data>(*std::move(shortened)));
}

}  // namespace antipode
