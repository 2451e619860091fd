// Recurrent layers whole: the inputs of all steps times their weights first, which threads share, then step after step.
// The state's weights are read in one order and then in the other, so that what the caches hold of them serves again.
#include "backends/cpu/kernels/gemm/dots.h"
#include "backends/cpu/kernels/recurrent/functions.h"

namespace aglow::cpu {

AGLOW_INLINE float* operand(void* const* p, int64_t number) { return static_cast<float*>(p[number]); }

AGLOW_INLINE int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

// The inputs' products with `chunk` rows of one direction's weights, and the biases, of which there are two.
template <int W>
AGLOW_INLINE int32_t recurrentInputs(const RecurrentDesc& d, void* const* p, int64_t begin, int64_t end) {
  const int64_t columns = d.gates * d.hidden, rows = d.steps * d.batch, chunks = (columns + d.chunk - 1) / d.chunk;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t direction = unit / chunks, first = unit % chunks * d.chunk, count = fewer(d.chunk, columns - first);
    float* sums = operand(p, d.scratch) + d.sums + direction * columns + first;
    for (int64_t i = 0; i < count; ++i) {
      sums[i] = 0;
      if (d.bias == kAbsent) continue;
      const float* bias = operand(p, d.bias) + direction * 2 * columns + first + i;
      // The state's part of the last gate passes the reset gate together with its bias.
      const bool later = d.stateFirst != 0 && first + i >= 2 * d.hidden;
      sums[i] = later ? bias[0] : bias[0] + bias[columns];
    }
    float* to = operand(p, d.scratch) + d.products + direction * rows * columns + first;
    const float* w = operand(p, d.w) + (direction * columns + first) * d.width;
    dots<W>({operand(p, d.x), rows, d.width}, d.tile, {w, count, d.width}, d.width, false,
            [&](int64_t row, int64_t column, auto value, int64_t lanes) __attribute__((always_inline)) {
              constexpr int N = sizeof(value) / sizeof(float);
              storeSome<N>(to + row * columns + column, value + loadSome<N>(sums + column, lanes), lanes);
            });
  }
  return kDone;
}

// One row of the batch in one direction: what its cell reads and writes, hidden elements of each.
struct RecurrentRow {
  const float *inputs, *fresh;  // of the gates, one after the other
  float *h, *c, *seen;
  const float *peepholes, *lateBias;  // null: none
};

template <int W>
struct Cell {
  using V = Lanes<float, W>;
  const RecurrentDesc& d;
  const FunctionDesc* functions;

  AGLOW_INLINE V gate(int function, V x) const {
    const float clip = bitsAs<float>(d.clip);
    return activate<W>(functions[function], d.clips != 0 ? clampLanes(x, -clip, clip) : x);
  }
  AGLOW_INLINE V sum(const RecurrentRow& row, int64_t g, int64_t j, int64_t count) const {
    return loadSome<W>(row.inputs + g * d.hidden + j, count) + loadSome<W>(row.fresh + g * d.hidden + j, count);
  }

  AGLOW_INLINE void rnn(const RecurrentRow& row, int64_t j, int64_t count) const {
    storeSome<W>(row.h + j, gate(0, sum(row, 0, j, count)), count);
  }

  AGLOW_INLINE void reset(const RecurrentRow& row, int64_t j, int64_t count) const {
    storeSome<W>(row.seen + j, gate(0, sum(row, 1, j, count)) * loadSome<W>(row.h + j, count), count);
  }
  AGLOW_INLINE void gru(const RecurrentRow& row, int64_t j, int64_t count) const {
    const V z = gate(0, sum(row, 0, j, count)), h = loadSome<W>(row.h + j, count);
    V state = loadSome<W>(row.fresh + 2 * d.hidden + j, count);
    if (d.stateFirst != 0) {
      if (row.lateBias != nullptr) state += loadSome<W>(row.lateBias + j, count);
      state *= gate(0, sum(row, 1, j, count));
    }
    const V fresh = gate(1, loadSome<W>(row.inputs + 2 * d.hidden + j, count) + state);
    storeSome<W>(row.h + j, fresh + z * (h - fresh), count);
  }

  AGLOW_INLINE V peeping(const RecurrentRow& row, int64_t which, V x, V c, int64_t j, int64_t count) const {
    return row.peepholes == nullptr ? x : x + loadSome<W>(row.peepholes + which * d.hidden + j, count) * c;
  }
  AGLOW_INLINE void lstm(const RecurrentRow& row, int64_t j, int64_t count) const {
    const V before = loadSome<W>(row.c + j, count);
    const V i = gate(0, peeping(row, 0, sum(row, 0, j, count), before, j, count));
    const V fresh = gate(1, sum(row, 3, j, count));
    V c = before + i * (fresh - before);
    if (d.inputForget == 0) {
      const V f = gate(0, peeping(row, 2, sum(row, 2, j, count), before, j, count));
      c = f * before + i * fresh;
    }
    const V o = gate(0, peeping(row, 1, sum(row, 1, j, count), c, j, count));
    storeSome<W>(row.c + j, c, count);
    storeSome<W>(row.h + j, o * activate<W>(functions[2], c), count);
  }

  // f(j, count) for all elements of the state.
  template <class F>
  AGLOW_INLINE void each(F f) const {
    int64_t j = 0;
    AGLOW_ROLLED for (; j + W <= d.hidden; j += W) f(j, W);
    if (j < d.hidden) f(j, d.hidden - j);
  }
};

template <int W>
struct RecurrentUnit {
  const RecurrentDesc& d;
  void* const* p;
  int64_t direction, first, count;  // rows of the batch

  AGLOW_INLINE float* scratch(int64_t from, int64_t row, int64_t width) const {
    return operand(p, d.scratch) + from + (direction * d.batch + row) * width;
  }
  AGLOW_INLINE bool active(int64_t row, int64_t step) const {
    if (d.lengths == kAbsent) return true;
    return step < (d.longLengths != 0 ? static_cast<const int64_t*>(p[d.lengths])[row]
                                      : static_cast<const int32_t*>(p[d.lengths])[row]);
  }
  AGLOW_INLINE void copy(float* to, const float* from) const {
    for (int64_t i = 0; i < d.hidden; ++i) to[i] = from == nullptr ? 0 : from[i];
  }
  AGLOW_INLINE const float* ofRow(int64_t number, int64_t row) const {
    return number == kAbsent ? nullptr : operand(p, number) + (direction * d.batch + row) * d.hidden;
  }

  // The state times the weights of the gates from `gate` on, `gates` of them.
  AGLOW_INLINE void multiply(int64_t state, int64_t gate, int64_t gates, bool backwards) const {
    const int64_t columns = d.gates * d.hidden;
    const float* r = operand(p, d.r) + (direction * columns + gate * d.hidden) * d.hidden;
    float* to = scratch(d.fresh, first, columns) + gate * d.hidden;
    dots<W>({scratch(state, first, d.hidden), count, d.hidden}, d.rows, {r, gates * d.hidden, d.hidden}, d.hidden,
            backwards, [&](int64_t row, int64_t column, auto value, int64_t lanes) __attribute__((always_inline)) {
              storeSome<sizeof(value) / sizeof(float)>(to + row * columns + column, value, lanes);
            });
  }

  AGLOW_INLINE RecurrentRow rowAt(int64_t row, int64_t step) const {
    const int64_t columns = d.gates * d.hidden;
    RecurrentRow at{};
    at.inputs = operand(p, d.scratch) + d.products + ((direction * d.steps + step) * d.batch + row) * columns;
    at.fresh = scratch(d.fresh, row, columns);
    at.h = scratch(d.h, row, d.hidden);
    at.c = scratch(d.c, row, d.hidden);
    at.seen = scratch(d.seen, row, d.hidden);
    if (d.peepholes != kAbsent) at.peepholes = operand(p, d.peepholes) + direction * 3 * d.hidden;
    if (d.bias != kAbsent) at.lateBias = operand(p, d.bias) + (direction * 6 + 5) * d.hidden;  // GRU
    return at;
  }

  AGLOW_INLINE void compute(int64_t step, bool backwards) const {
    const Cell<W> cell{d, d.functions[direction]};
    const auto rows = [&](auto f) __attribute__((always_inline)) {
      for (int64_t row = first; row < first + count; ++row) {
        if (!active(row, step)) continue;
        const RecurrentRow at = rowAt(row, step);
        cell.each([&](int64_t j, int64_t lanes) __attribute__((always_inline)) { f(at, j, lanes); });
      }
    };
    const bool resets = d.cell == kCellGru && d.stateFirst == 0;
    multiply(d.h, 0, resets ? 2 : d.gates, backwards);
    if (resets) {
      rows([&](const RecurrentRow& at, int64_t j, int64_t lanes)
               __attribute__((always_inline)) { cell.reset(at, j, lanes); });
      multiply(d.seen, 2, 1, backwards);
    }
    rows([&](const RecurrentRow& at, int64_t j, int64_t lanes) __attribute__((always_inline)) {
      if (d.cell == kCellRnn)
        cell.rnn(at, j, lanes);
      else if (d.cell == kCellGru)
        cell.gru(at, j, lanes);
      else
        cell.lstm(at, j, lanes);
    });
  }

  AGLOW_INLINE void run() const {
    for (int64_t row = first; row < first + count; ++row) {
      copy(scratch(d.h, row, d.hidden), ofRow(d.initialH, row));
      if (d.cell == kCellLstm) copy(scratch(d.c, row, d.hidden), ofRow(d.initialC, row));
    }
    const bool reverse = d.reverse != 0 || direction == 1;
    AGLOW_ROLLED for (int64_t i = 0; i < d.steps; ++i) {
      const int64_t step = reverse ? d.steps - 1 - i : i;
      bool any = false;
      for (int64_t row = first; row < first + count; ++row) any |= active(row, step);
      if (any) compute(step, i % 2 != 0);
      // Rows that have ended keep their state and give zeros.
      for (int64_t row = first; row < first + count; ++row)
        copy(operand(p, d.y) + ((step * d.directions + direction) * d.batch + row) * d.hidden,
             active(row, step) ? scratch(d.h, row, d.hidden) : nullptr);
    }
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t at = (direction * d.batch + row) * d.hidden;
      if (d.lastH != kAbsent) copy(operand(p, d.lastH) + at, scratch(d.h, row, d.hidden));
      if (d.lastC != kAbsent) copy(operand(p, d.lastC) + at, scratch(d.c, row, d.hidden));
    }
  }
};

template <int W>
AGLOW_INLINE int32_t recurrentSteps(const RecurrentDesc& d, void* const* p, int64_t begin, int64_t end) {
  const int64_t blocks = (d.batch + d.rows - 1) / d.rows;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = unit % blocks * d.rows;
    RecurrentUnit<W>{d, p, unit / blocks, first, fewer(d.rows, d.batch - first)}.run();
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_RECURRENT(W)                                                                                          \
  extern "C" int32_t aglow_recurrent_inputs_w##W(const aglow::cpu::RecurrentDesc* d, void* const* p, int64_t begin, \
                                                 int64_t end) {                                                     \
    return aglow::cpu::recurrentInputs<W>(*d, p, begin, end);                                                       \
  }                                                                                                                 \
  extern "C" int32_t aglow_recurrent_steps_w##W(const aglow::cpu::RecurrentDesc* d, void* const* p, int64_t begin,  \
                                                int64_t end) {                                                      \
    return aglow::cpu::recurrentSteps<W>(*d, p, begin, end);                                                        \
  }

AGLOW_RECURRENT(4)
AGLOW_RECURRENT(8)
AGLOW_RECURRENT(16)
