// How the steps of a recurrent layer are shared out among the units of a device.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/recurrent_layer.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kMostStepKernels = 4096;

int64_t evenly(int64_t count, int64_t most) { return ceilDiv(count, ceilDiv(count, most)); }

// Cycles of a unit. A group reads its weights in every step by what a unit gets of memory that all share, less where
// all want it, and waits for it and for its own items; a kernel of its own costs what a driver takes to begin one.
double sharedCost(const RecurrentForm& f, const RecurrentSizes& s, const DeviceShape& shape) {
  constexpr double kFloatBytes = sizeof(float), kBytes = 64, kBytesOfAll = 24, kWait = 1500, kWaitOfLoad = 8,
                   kLaunch = 6000;
  const auto units = static_cast<double>(shape.computeUnits);
  const auto groups = static_cast<double>(s.directions * f.blocks(s) * f.slices(s));
  const auto weights = static_cast<double>(s.columns() * f.slice);
  const double multiply = weights * static_cast<double>(f.rows) / static_cast<double>(s.gates) *
                          std::max(static_cast<double>(s.gates) / 128, 1. / 32);
  const double memory = weights * kFloatBytes * std::max(1 / kBytes, std::min(groups, units) / (units * kBytesOfAll));
  const double rounds = static_cast<double>(ceilDiv(f.slice, f.across) * s.phases());
  const double wait = rounds * (kWait + kWaitOfLoad * static_cast<double>(ceilDiv(s.hidden, f.parts)));
  const double waves = std::max(1., groups / units);
  return waves * std::max(memory, multiply) + wait + (f.stepwise ? kLaunch * static_cast<double>(s.phases()) : 0);
}

// Vectors that are multiplied, two at once; weights that the unit's own memory does not hold; functions of the gates.
double itemCost(const RecurrentForm& f, const RecurrentSizes& s, const DeviceShape& shape) {
  constexpr double kNear = 1 << 20, kFarBytes = 10, kFunctions = 40, kLaunch = 40000;
  const double vectors =
                   static_cast<double>(ceilDiv(f.slice, f.lanes) * std::max<int64_t>(f.lanes / shape.vectorFloats, 1)),
               rows = static_cast<double>(f.rows), gates = static_cast<double>(s.gates);
  const double multiply = vectors * static_cast<double>(s.hidden) * std::max(gates * rows / 2, gates);
  const double bytes = static_cast<double>(s.columns() * f.slice * kFloat);
  const double work = std::max(multiply, bytes > kNear ? bytes / kFarBytes : 0) + vectors * rows * gates * kFunctions;
  const double items = static_cast<double>(s.directions * f.blocks(s) * f.slices(s));
  const double waves = std::max(1., items / static_cast<double>(shape.computeUnits));
  return waves * work + (f.stepwise ? kLaunch * static_cast<double>(s.phases()) : 0);
}

// Items of a group: neighbours in the state side by side, and as many parts of what they multiply as there is room for.
bool shareOut(RecurrentForm& f, const RecurrentSizes& s, const DeviceShape& shape) {
  // As for rows: drivers build larger groups only where items need few registers. They keep a little of local memory.
  constexpr int64_t kMostItems = 256, kLeastPart = 8, kKept = 256;
  for (int64_t most = std::min(shape.groupItems, kMostItems); most >= 1; most /= 2) {
    f.across = std::min(f.slice, most);
    f.parts = std::clamp<int64_t>(most / f.across, 1, ceilDiv(s.hidden, kLeastPart));
    if (f.localBytes(s) + kKept <= shape.localBytes) return true;
  }
  return false;
}

}  // namespace

RecurrentSizes::RecurrentSizes(const Attrs& attrs, const Type& x, const Type& r)
    : cell(opOf(attrs.op())),
      steps(x.dim(0)),
      batch(x.dim(1)),
      width(x.dim(2)),
      hidden(r.dim(2)),
      gates(hidden == 0 ? 1 : r.dim(1) / hidden),
      directions(directionsOf(attrs)),
      reverse(attrs.word("direction") == "reverse"),
      halves(cell == Op::GRU && !attrs.flag("linear_before_reset")) {}

int64_t RecurrentForm::padded(const RecurrentSizes& s) const { return alignUp(s.hidden, lanes); }
int64_t RecurrentForm::blocks(const RecurrentSizes& s) const { return ceilDiv(s.batch, rows); }
int64_t RecurrentForm::slices(const RecurrentSizes& s) const { return ceilDiv(padded(s), slice); }

int64_t RecurrentForm::localBytes(const RecurrentSizes& s) const {
  const int64_t states = stepwise ? 1 : s.halves ? 3 : 2;
  return (states * rows * s.hidden + items() * rows * s.gates) * kFloat;
}

RecurrentForm chooseForm(const RecurrentSizes& s, const DeviceShape& shape) {
  RecurrentForm form{.shared = shape.sharesLocal, .lanes = 0};
  int64_t lanes = 1;
  if (!shape.sharesLocal)
    for (lanes = 4; lanes < 16 && lanes < s.hidden;) lanes *= 2;
  std::vector<std::pair<double, RecurrentForm>> found;
  const auto add = [&](RecurrentForm f) {
    if (RecurrentPlaces(s, f).floats > kMostFloats || (f.shared && !shareOut(f, s, shape))) return;
    found.emplace_back(f.shared ? sharedCost(f, s, shape) : itemCost(f, s, shape), f);
  };
  for (int64_t most = 1, before = 0; most <= (form.shared ? 16 : 4); most *= 2) {
    RecurrentForm f{.shared = form.shared, .lanes = lanes, .rows = evenly(s.batch, most)};
    if (f.rows == before || f.rows * s.gates > 64) continue;
    before = f.rows;
    f.slice = f.padded(s);
    add(f);
    f.stepwise = true;
    if (s.steps * s.phases() > kMostStepKernels) continue;
    if (form.shared) {
      for (f.slice = 8; f.slice < s.hidden && f.slice <= 128; f.slice *= 2) add(f);
    } else if (const int64_t slices = shape.computeUnits / (s.directions * f.blocks(s)); slices > 1) {
      f.slice = alignUp(ceilDiv(s.hidden, slices), lanes);
      add(f);
    }
  }
  if (found.empty()) return form;
  const std::string question = fmt::format("recurrent layer {} x {} of {}, {} gates, {} directions, {} phases", s.steps,
                                           s.batch, s.hidden, s.gates, s.directions, s.phases());
  return cheapestOr(shape.ways, question, std::move(found), [](const RecurrentForm& f) {
    return fmt::format("{} of {}x{}", f.stepwise ? "steps" : "whole", f.rows, f.slice);
  });
}

RecurrentPlaces::RecurrentPlaces(const RecurrentSizes& s, const RecurrentForm& f) : paddedRows(f.blocks(s) * f.rows) {
  constexpr int64_t kLine = 16;
  const int64_t wide = f.padded(s), all = s.directions * paddedRows * wide;
  const auto place = [&](int64_t count) {
    const int64_t at = floats;
    floats += alignUp(count, kLine);
    return at;
  };
  weights = place(s.directions * s.hidden * s.gates * wide);
  products = place(s.directions * s.steps * s.batch * s.gates * wide);
  counters = place(2);
  states = place(2 * all);
  peepholes = place(s.cell == Op::LSTM ? s.directions * 3 * wide : 0);
  late = place(s.cell == Op::GRU ? s.directions * wide : 0);
  cells = place(s.cell == Op::LSTM ? all : 0);
  seen = place(s.halves ? all : 0);
  updates = place(s.halves ? all : 0);
}

}  // namespace aglow::codegen
