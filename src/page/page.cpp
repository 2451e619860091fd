#include "page/page.h"

#include <fmt/format.h>

// The viewer, put into the program as it is (cmake/viewer.cmake).
extern "C" const char aglow_viewer_style[], aglow_viewer_style_end[];
extern "C" const char aglow_viewer_script[], aglow_viewer_script_end[];

namespace aglow {

namespace {

// JSON inside of a script element: no string of it may end the element.
std::string embeddedJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

}  // namespace

std::string escapedHtml(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string htmlOf(const Page& page) {
  const std::string_view style(aglow_viewer_style, aglow_viewer_style_end);
  const std::string_view script(aglow_viewer_script, aglow_viewer_script_end);
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
      "<meta name=viewport "
      "content='width=device-width,initial-scale=1'>\n<title>{}</title>\n<style>\n{}</style>\n<body>\n{}",
      escapedHtml(page.title), style, page.body);
  if (!page.data.empty())
    out += fmt::format("<script type='application/json' id=data>{}</script>\n<script>\n{}</script>\n",
                       embeddedJson(page.data), script);
  return out + "</html>\n";
}

}  // namespace aglow
