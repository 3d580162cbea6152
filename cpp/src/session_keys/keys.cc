#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <stdexcept>

#include "antipode/session_keys.h"

namespace antipode {
namespace {

std::string HmacOf(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  const auto* found = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                           reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(), &length);
  if (found == nullptr) throw std::runtime_error("OpenSSL has no HMAC with SHA-256");
  return {reinterpret_cast<const char*>(bytes.data()), length};
}

}  // namespace

std::shared_ptr<const SessionSigner> SessionKeys(const std::vector<std::string>& keys) {
  return SignerOf(keys, HmacOf);
}

}  // namespace antipode
