// The classes that a model holds for the most likely.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/outputs.h"
#include "support/file.h"

namespace aglow::cli {

namespace {

struct Place {
  int64_t index = 0;
  double value = 0;
};

// The first places of a row, the largest first, NaN last.
std::vector<Place> firstPlaces(std::span<const double> row, size_t count) {
  std::vector<Place> places;
  for (size_t i = 0; i < row.size(); ++i) places.push_back({static_cast<int64_t>(i), row[i]});
  const auto before = [](const Place& a, const Place& b) {
    return a.value > b.value || (b.value != b.value && a.value == a.value);
  };
  count = std::min(count, places.size());
  std::stable_sort(places.begin(), places.end(), before);
  places.resize(count);
  return places;
}

// Calls use(name, number of the row, places) for each row.
template <class Use>
void forEachRow(const Ranking& ranking, const std::vector<NamedOutputs>& all, const Use& use) {
  constexpr int64_t kMostRows = 1000;
  for (const NamedOutputs& outputs : all)
    for (size_t i = 0; i < outputs.values.size(); ++i) {
      const ModelValue& value = outputs.values[i];
      if (!value.isTensor() || !isFloat(value.tensor().type().kind()) || value.tensor().type().rank() < 1) continue;
      const int64_t width = value.tensor().type().shape().dims().back();
      if (width < 2) continue;
      const std::vector<double> elements = value.tensor().doubles();
      const int64_t rows = std::min<int64_t>(std::ssize(elements) / width, kMostRows);
      for (int64_t row = 0; row < rows; ++row)
        use(outputs.prefix + outputs.names[i], row, rows,
            firstPlaces(std::span(elements).subspan(static_cast<size_t>(row * width), static_cast<size_t>(width)),
                        ranking.top));
    }
}

std::string_view labelOf(const Ranking& ranking, int64_t index) {
  return index < std::ssize(ranking.labels) ? ranking.labels[static_cast<size_t>(index)] : std::string_view();
}

}  // namespace

Result<std::vector<std::string>> readLabels(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  std::vector<std::string> labels;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find('\n', from), text.size());
    std::string_view line = text.substr(from, to - from);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    labels.emplace_back(line);
    from = to + 1;
  }
  return labels;
}

std::string rankingText(const Ranking& ranking, const std::vector<NamedOutputs>& all) {
  std::string out;
  forEachRow(ranking, all, [&](const std::string& name, int64_t row, int64_t rows, const std::vector<Place>& places) {
    out += rows > 1 ? fmt::format("{}[{}]\n", name, row) : name + "\n";
    for (const Place& place : places)
      out += fmt::format("  {:>10.6g}  {:>6}  {}\n", place.value, place.index, labelOf(ranking, place.index));
  });
  return out.empty() ? "no output has rows of floats to be ranked\n" : out;
}

nlohmann::ordered_json rankingJson(const Ranking& ranking, const std::vector<NamedOutputs>& all) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  forEachRow(ranking, all, [&](const std::string& name, int64_t row, int64_t, const std::vector<Place>& places) {
    nlohmann::ordered_json top = nlohmann::ordered_json::array();
    for (const Place& place : places) {
      top.push_back({{"index", place.index}, {"value", place.value}});
      if (!ranking.labels.empty()) top.back()["label"] = labelOf(ranking, place.index);
    }
    rows.push_back({{"name", name}, {"row", row}, {"top", std::move(top)}});
  });
  return rows;
}

}  // namespace aglow::cli
