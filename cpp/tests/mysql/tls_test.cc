// Certificates that do not fit together.
#include <gtest/gtest.h>

#include "antipode/errors.h"
#include "antipode/mysql.h"

namespace antipode::mysql {
namespace {

TEST(Tls, NeedsWhatItVerifiesByAndWholePairs) {
  for (const Tls& each : {Tls{}, Tls{"ca.pem", "cert.pem", ""}, Tls{"ca.pem", "", "key.pem"}}) {
    Options options{"app", "secret", "blog"};
    options.tls = each;
    EXPECT_THROW(Shim::Open("posts", "posts.internal", 3306, options), ConfigurationError);
  }
}

}  // namespace
}  // namespace antipode::mysql
