// Headers of a request, and of an answer to one of its calls: lines are in turn of `baggage` and `antipode-lineage`.
// What a text makes of a lineage is the decoder's target; here it is which texts are found, and what goes on.
#include "antipode/members.h"
#include "antipode/propagation.h"
#include "holds.h"

namespace {

using antipode::fuzz::Must;

/// Of more headers than two of each name no more is found, and each costs as much as the first.
constexpr std::size_t kMostLines = 4;

antipode::Headers HeadersIn(std::string_view text) {
  antipode::Headers headers;
  while (headers.size() < kMostLines) {
    const std::size_t end = headers.size() + 1 < kMostLines ? text.find('\n') : std::string_view::npos;
    headers.emplace_back(headers.size() % 2 == 0 ? "baggage" : "antipode-lineage", text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return headers;
}

/// What one header says in the place of our member.
void MustCarry(std::string_view header, const std::string& text) {
  const std::string joined = antipode::WithMember(header, text);
  Must(joined.size() <= 8'192);
  Must(antipode::Members({joined}) == std::vector<std::string>{text});
  Must(antipode::Members({antipode::WithoutMember(joined).value_or("antipode")}).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  antipode::Headers headers = HeadersIn(antipode::fuzz::Text(data, size));
  const auto scope = antipode::Extract(headers);
  antipode::ExtractResponse(headers, "posts", scope.get());
  const std::string text = scope->text();
  Must(antipode::Lineage::TryDeserialize(text) && antipode::Lineage::TryDeserialize(scope->snapshot()));
  const auto answer = antipode::AnswerOf(*scope);
  Must(!answer || antipode::Lineage::TryDeserialize(*answer));
  MustCarry(headers.front().second, text);
  antipode::Strip(headers);
  for (const auto& [name, value] : headers) Must(antipode::Members({value}).empty());
  scope->End();
  return 0;
}
