// Headers of requests and answers: each line is one of `baggage`, and of `antipode-lineage`.
#include "antipode/members.h"
#include "antipode/propagation.h"
#include "antipode/text.h"
#include "holds.h"

namespace {

using antipode::fuzz::Must;

/// What one header says in the place of our member.
void MustCarry(std::string_view header, const std::string& text) {
  const std::string joined = antipode::WithMember(header, text);
  Must(joined.size() <= 8'192);
  Must(antipode::Members({joined}) == std::vector<std::string>{text});
  Must(antipode::Members({antipode::WithoutMember(joined).value_or("antipode")}).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  antipode::Headers headers;
  for (const std::string_view line : antipode::text::Split(antipode::fuzz::Text(data, size), '\n')) {
    headers.emplace_back("baggage", line);
    headers.emplace_back("antipode-lineage", line);
  }
  const auto scope = antipode::Extract(headers);
  antipode::ExtractResponse(headers, "posts", scope.get());
  const antipode::Lineage lineage = scope->lineage();
  antipode::fuzz::MustTravel(lineage);
  const auto answer = antipode::AnswerOf(*scope);
  Must(!answer || antipode::Lineage::TryDeserialize(*answer));
  MustCarry(headers.front().second, lineage.Serialize(antipode::Bound{1'024, {}}));
  antipode::Strip(headers);
  for (const auto& [name, value] : headers) Must(antipode::Members({value}).empty());
  scope->End();
  return 0;
}
