// The report as a page: tables, and what was seen of each value drawn with the range that its integers cover.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "page/page.h"
#include "quant/report.h"

namespace aglow::quant {

namespace {

std::string decibelText(double decibels) { return std::isfinite(decibels) ? fmt::format("{:.1f}", decibels) : "exact"; }

std::string number(const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : ""; }

// The width of a bar in percent: 60 dB and more have none.
int barOf(double decibels) {
  constexpr double kNone = 60, kWidest = 100;
  return static_cast<int>(std::clamp((kNone - decibels) / kNone, 0.0, 1.0) * kWidest);
}

std::string outcomeHtml(const Report& report, const Outcome& outcome) {
  std::string out = "<table><tr><th>output<th>SQNR, dB\n";
  for (const Noise& output : outcome.outputs)
    out += fmt::format("<tr><td>{}<td class=n>{}\n", escapedHtml(output.name), decibelText(output.decibels()));
  if (outcome.rows > 0)
    out += fmt::format("<tr><td>same first place<td class=n>{} of {}\n", outcome.same, outcome.rows);
  if (outcome.metric)
    out += fmt::format("<tr><td>{} (in floats {})<td class=n>{}\n", escapedHtml(report.metric),
                       number(report.floatMetric), number(outcome.metric));
  return out + "</table>\n";
}

// Columns of equal width from the smallest to the largest value; heights are logarithms of counts. Two lines stand
// where the range of the integers ends.
std::string histogram(const ValueProfile& value, const std::optional<Parameters>& parameters) {
  constexpr size_t kColumns = 96;
  constexpr double kColumn = 3, kHeight = 90, kWidth = kColumn * kColumns;
  std::string out =
      fmt::format("<svg width={} height={} viewBox='0 0 {} {}' role=img>", kWidth, kHeight, kWidth, kHeight);
  const Range whole{value.min, value.max};
  if (!(whole.low < whole.high)) return out + "</svg>";
  std::vector<double> columns = evenBins(value, kColumns);
  const double zeros = static_cast<double>(value.counts[Bins::kZero]);
  const auto place = [&](double at) { return (at - whole.low) / (whole.high - whole.low); };
  if (zeros > 0) columns[std::min(kColumns - 1, static_cast<size_t>(place(0) * kColumns))] += zeros;
  double most = 1;
  for (const double count : columns) most = std::max(most, std::log1p(count));
  std::string path;
  for (size_t i = 0; i < kColumns; ++i) {
    const double height = std::log1p(columns[i]) / most * kHeight;
    if (height > 0)
      path += fmt::format("M{} {:.1f}h3V{}h-3z", kColumn * static_cast<double>(i), kHeight - height, kHeight);
  }
  out += fmt::format("<path d='{}' fill='#48c'/>", path);
  const auto line = [&](double at) {
    const double x = place(at) * kWidth;
    if (x > 0 && x < kWidth) out += fmt::format("<path d='M{:.1f} 0V{}' stroke='#c33'/>", x, kHeight);
  };
  if (parameters) {
    const Range covered = rangeOf(*parameters);
    line(covered.low);
    line(covered.high);
  }
  return out + "</svg>";
}

}  // namespace

std::string htmlOf(const Report& report, std::string_view title) {
  std::string out = fmt::format("<article>\n<h1>{} in integers</h1>\n<p>Signal to noise over {} samples.</p>\n{}",
                                escapedHtml(title), report.samples, outcomeHtml(report, report.integers));
  if (report.found) {
    out += fmt::format("<h2>To reach {}</h2>\n", escapedHtml(report.found->goal));
    out += report.found->keep.empty() ? "<p>Nothing has to stay in floats.</p>\n"
                                      : fmt::format("<p><code>--keep-float {}</code></p>\n{}",
                                                    escapedHtml(fmt::format("{}", fmt::join(report.found->keep, ","))),
                                                    outcomeHtml(report, report.found->outcome));
  }
  for (const GainReport& gain : report.gains)
    out += fmt::format("<p>Without <code>{}</code>: {} dB.</p>\n", escapedHtml(gain.name),
                       decibelText(gain.without.decibels()));
  if (!report.layers.empty()) {
    out +=
        fmt::format("<h2>Layers, each alone in integers</h2>\n<table><tr><th>layer<th>operator<th>SQNR, dB<th>{}<th>\n",
                    escapedHtml(report.metric));
    for (const LayerReport& layer : report.layers)
      out += fmt::format(
          "<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td style='width:12em'><span class=share "
          "style='width:{}%'></span>\n",
          escapedHtml(layer.name), layer.op, decibelText(layer.alone.decibels()), number(layer.alone.metric),
          barOf(layer.alone.decibels()));
    out += "</table>\n";
  }
  if (!report.vetoed.empty()) {
    out += "<h2>In floats, and why</h2>\n<table><tr><th>layer<th>operator<th>reason\n";
    for (const Vetoed& layer : report.vetoed)
      out += fmt::format("<tr><td>{}<td>{}<td>{}\n", escapedHtml(layer.name), layer.op, escapedHtml(layer.reason));
    out += "</table>\n";
  }
  out +=
      "<h2>Values, the noisiest first</h2>\n<p>Counts are drawn as logarithms; red lines end the range of the "
      "integers.</p>\n";
  for (const ValueReport& value : report.values) {
    const std::string integers = value.parameters
                                     ? fmt::format("{} &times; {:.4g}, offset {}", elemName(value.parameters->kind),
                                                   value.parameters->scale, value.parameters->offset)
                                     : "floats";
    out += fmt::format("<figure>{}<figcaption>{} &middot; {} dB<br>{:.4g} to {:.4g}, {}</figcaption></figure>\n",
                       histogram(value.seen, value.parameters), escapedHtml(value.noise.name),
                       decibelText(value.noise.decibels()), value.seen.min, value.seen.max, integers);
  }
  return htmlOf(Page{.title = title, .body = out + "</article>\n"});
}

}  // namespace aglow::quant
