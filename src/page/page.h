// One page that needs no other file and no network: text, data, and the viewer (viewer/) that draws the data.
#pragma once

#include <string>
#include <string_view>

namespace aglow {

// Text between tags or inside of quotes.
std::string escapedHtml(std::string_view text);

struct Page {
  std::string_view title;
  std::string_view body = {};  // HTML that is there from the beginning
  std::string_view data = {};  // JSON; the viewer has a view for each of its members that it knows
};
std::string htmlOf(const Page& page);

}  // namespace aglow
