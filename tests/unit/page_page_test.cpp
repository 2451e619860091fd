#include "page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aglow {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Page, EscapesWhatWouldBeMarkup) { EXPECT_EQ(escapedHtml("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;"); }

TEST(Page, HasTitleAndBody) {
  const std::string page = htmlOf(Page{.title = "x<y", .body = "<p>text</p>"});
  EXPECT_THAT(page, HasSubstr("<title>x&lt;y</title>"));
  EXPECT_THAT(page, HasSubstr("<p>text</p>"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));  // nothing to draw
}

TEST(Page, DataCannotEndItsElement) {
  const std::string page = htmlOf(Page{.title = "t", .data = R"({"name":"</script><b>"})"});
  EXPECT_THAT(page, HasSubstr(R"({"name":"\u003c/script>\u003cb>"})"));
  EXPECT_THAT(page, HasSubstr("class Graph"));
}

}  // namespace
}  // namespace aglow
