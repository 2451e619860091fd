// Recurrent layers whole: the inputs of all steps times their weights first, then step after step. Threads share the
// elements of the state: each reads the weights of the same ones in every step, and so keeps them in its cache.
#include "backends/cpu/kernels/gemm/dots.h"
#include "backends/cpu/kernels/recurrent/functions.h"

namespace aglow::cpu {

AGLOW_INLINE float* operand(void* const* p, int64_t number) { return static_cast<float*>(p[number]); }

AGLOW_INLINE int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

AGLOW_INLINE int64_t* numbers(const RecurrentDesc& d, void* const* p, int64_t place) {
  return reinterpret_cast<int64_t*>(operand(p, d.scratch) + place);
}

// Which sequences are worked on, and where they stand: all of them in every step, or as many as have not ended.
struct Sequences {
  const RecurrentDesc& d;
  void* const* p;

  AGLOW_INLINE bool end() const { return d.lengths != kAbsent; }
  AGLOW_INLINE int64_t active(int64_t step) const { return end() ? numbers(d, p, d.active)[step] : d.batch; }
  // The number of a sequence in the operands.
  AGLOW_INLINE int64_t number(int64_t place) const { return end() ? numbers(d, p, d.order)[place] : place; }
  // Rows of inputs before a step; a single one is worked on beside another, as all are.
  AGLOW_INLINE int64_t start(int64_t step) const { return end() ? numbers(d, p, d.starts)[step] : step * d.batch; }
  AGLOW_INLINE int64_t rows() const {
    const int64_t all = d.steps * d.batch, least = fewer(2, all), some = start(d.steps);
    return some < least ? least : some;
  }
  AGLOW_INLINE const float* inputs() const { return end() ? operand(p, d.scratch) + d.packed : operand(p, d.x); }

  AGLOW_INLINE int64_t length(int64_t number) const {
    const int64_t steps = d.longLengths != 0 ? static_cast<const int64_t*>(p[d.lengths])[number]
                                             : static_cast<const int32_t*>(p[d.lengths])[number];
    return steps < 0 ? 0 : fewer(steps, d.steps);
  }
  // The longest first, and those of one length in their order.
  AGLOW_INLINE void sort() const {
    int64_t *order = numbers(d, p, d.order), *active = numbers(d, p, d.active), *starts = numbers(d, p, d.starts);
    for (int64_t i = 0; i < d.batch; ++i) {
      int64_t place = i;
      for (; place > 0 && length(order[place - 1]) < length(i); --place) order[place] = order[place - 1];
      order[place] = i;
    }
    int64_t count = d.batch;
    starts[0] = 0;
    for (int64_t step = 0; step < d.steps; ++step) {
      while (count > 0 && length(order[count - 1]) <= step) --count;
      active[step] = count;
      starts[step + 1] = starts[step] + count;
    }
  }
};

// The inputs of sequences that have not ended, one after the other. A unit is a step.
AGLOW_INLINE int32_t recurrentPack(const RecurrentDesc& d, void* const* p, int64_t begin, int64_t end) {
  const Sequences sequences{d, p};
  float* packed = operand(p, d.scratch) + d.packed;
  for (int64_t step = begin; step < end; ++step) {
    float* to = packed + sequences.start(step) * d.width;
    for (int64_t place = 0; place < sequences.active(step); ++place, to += d.width) {
      const float* from = operand(p, d.x) + (step * d.batch + sequences.number(place)) * d.width;
      for (int64_t i = 0; i < d.width; ++i) to[i] = from[i];
    }
  }
  if (begin == 0)
    for (int64_t i = sequences.start(d.steps) * d.width; i < sequences.rows() * d.width; ++i) packed[i] = 0;
  return kDone;
}

// The inputs' products with `chunk` rows of one direction's weights, and the biases, of which there are two.
template <int W>
AGLOW_INLINE int32_t recurrentInputs(const RecurrentDesc& d, void* const* p, int64_t begin, int64_t end) {
  const int64_t columns = d.gates * d.hidden, all = d.steps * d.batch, chunks = (columns + d.chunk - 1) / d.chunk;
  const Sequences sequences{d, p};
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
    float* to = operand(p, d.scratch) + d.products + direction * all * columns + first;
    const float* w = operand(p, d.w) + (direction * columns + first) * d.width;
    dots<W>({sequences.inputs(), sequences.rows(), d.width}, d.tile, {w, count, d.width}, d.width,
            [&](int64_t row, int64_t column, auto value, int64_t lanes) __attribute__((always_inline)) {
              constexpr int N = sizeof(value) / sizeof(float);
              storeSome<N>(to + row * columns + column, value + loadSome<N>(sums + column, lanes), lanes);
            });
  }
  return kDone;
}

// One sequence in one direction: what its cell reads and writes, hidden elements of each.
struct RecurrentRow {
  const float *inputs, *fresh;  // of the gates, one after the other
  const float* before;          // the state
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
    storeSome<W>(row.seen + j, gate(0, sum(row, 1, j, count)) * loadSome<W>(row.before + j, count), count);
  }
  AGLOW_INLINE void gru(const RecurrentRow& row, int64_t j, int64_t count) const {
    const V z = gate(0, sum(row, 0, j, count)), h = loadSome<W>(row.before + j, count);
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
};

// A slice of the states of a few sequences in one direction, for one round.
template <int W>
struct RecurrentUnit {
  const RecurrentDesc& d;
  void* const* p;
  int64_t direction, first, rows;  // of the sequences, in the order of scratch memory
  int64_t from, to;                // of the state's elements
  int64_t index, phase;            // of the step, in the order in which they are done

  AGLOW_INLINE float* scratch(int64_t place, int64_t row, int64_t width) const {
    return operand(p, d.scratch) + place + (direction * d.batch + row) * width;
  }
  // The states before and after a step change places.
  AGLOW_INLINE float* state(int64_t row, int64_t after) const {
    return scratch(d.h + (index + after) % 2 * d.directions * d.batch * d.hidden, row, d.hidden);
  }
  AGLOW_INLINE int64_t step() const { return d.reverse != 0 || direction == 1 ? d.steps - 1 - index : index; }
  AGLOW_INLINE Sequences sequences() const { return {d, p}; }
  // How many of the rows have not ended.
  AGLOW_INLINE int64_t active() const {
    const int64_t count = sequences().active(step()) - first;
    return count < 0 ? 0 : fewer(count, rows);
  }
  // The slice, or zeros.
  AGLOW_INLINE void copy(float* row, const float* source) const {
    for (int64_t i = from; i < to; ++i) row[i] = source == nullptr ? 0 : source[i];
  }

  // A state times the slice's weights of the gates from `gate` to `end`. A row is not multiplied alone if it has
  // neighbours, so that it gives the same whether they have ended or not.
  AGLOW_INLINE void multiply(const float* states, int64_t gate, int64_t end) const {
    const int64_t columns = d.gates * d.hidden, least = fewer(2, rows), some = active();
    const int64_t count = some < least ? least : some;
    AGLOW_ROLLED for (; gate < end; ++gate) {
      const float* r = operand(p, d.r) + (direction * columns + gate * d.hidden + from) * d.hidden;
      float* sums = scratch(d.fresh, first, columns) + gate * d.hidden + from;
      dots<W>({states, count, d.hidden}, d.rows, {r, to - from, d.hidden}, d.hidden,
              [&](int64_t row, int64_t column, auto value, int64_t lanes) __attribute__((always_inline)) {
                storeSome<sizeof(value) / sizeof(float)>(sums + row * columns + column, value, lanes);
              });
    }
  }

  AGLOW_INLINE RecurrentRow rowAt(int64_t row) const {
    const int64_t columns = d.gates * d.hidden;
    RecurrentRow at{};
    at.inputs = operand(p, d.scratch) + d.products +
                (direction * d.steps * d.batch + sequences().start(step()) + row) * columns;
    at.fresh = scratch(d.fresh, row, columns);
    at.before = state(row, 0);
    at.h = state(row, 1);
    at.c = scratch(d.c, row, d.hidden);
    at.seen = scratch(d.seen, row, d.hidden);
    if (d.peepholes != kAbsent) at.peepholes = operand(p, d.peepholes) + direction * 3 * d.hidden;
    if (d.bias != kAbsent) at.lateBias = operand(p, d.bias) + (direction * 6 + 5) * d.hidden;  // GRU
    return at;
  }

  // f(row, j, count) for the slice of all rows that have not ended.
  template <class F>
  AGLOW_INLINE void each(F f) const {
    for (int64_t row = first; row < first + active(); ++row) {
      const RecurrentRow at = rowAt(row);
      int64_t j = from;
      AGLOW_ROLLED for (; j + W <= to; j += W) f(at, j, W);
      if (j < to) f(at, j, to - j);
    }
  }

  AGLOW_INLINE void compute() const {
    const Cell<W> cell{d, d.functions[direction]};
    if (d.phases == 1) {
      multiply(state(first, 0), 0, d.gates);
    } else if (phase == 0) {
      multiply(state(first, 0), 0, 2);
      each([&](const RecurrentRow& at, int64_t j, int64_t lanes)
               __attribute__((always_inline)) { cell.reset(at, j, lanes); });
      return;
    } else {
      multiply(scratch(d.seen, first, d.hidden), 2, 3);
    }
    each([&](const RecurrentRow& at, int64_t j, int64_t lanes) __attribute__((always_inline)) {
      if (d.cell == kCellRnn)
        cell.rnn(at, j, lanes);
      else if (d.cell == kCellGru)
        cell.gru(at, j, lanes);
      else
        cell.lstm(at, j, lanes);
    });
  }

  AGLOW_INLINE void run() const {
    const int64_t some = active();
    if (some > 0) compute();
    if (phase + 1 < d.phases) return;
    // Rows that have ended keep their state and give zeros.
    for (int64_t row = first; row < first + rows; ++row) {
      const bool ended = row >= first + some;
      const int64_t number = sequences().number(row);
      if (ended) copy(state(row, 1), state(row, 0));
      copy(operand(p, d.y) + ((step() * d.directions + direction) * d.batch + number) * d.hidden,
           ended ? nullptr : state(row, 1));
      if (index + 1 < d.steps) continue;
      const int64_t at = (direction * d.batch + number) * d.hidden;
      if (d.lastH != kAbsent) copy(operand(p, d.lastH) + at, state(row, 1));
      if (d.lastC != kAbsent) copy(operand(p, d.lastC) + at, scratch(d.c, row, d.hidden));
    }
  }
};

// The order of sequences, and their states before the first step.
AGLOW_INLINE int32_t recurrentBegin(const RecurrentDesc& d, void* const* p) {
  const Sequences sequences{d, p};
  if (sequences.end()) sequences.sort();
  const auto begin = [&](int64_t place, int64_t number) {
    for (int64_t row = 0; row < d.directions * d.batch; ++row) {
      float* to = operand(p, d.scratch) + place + row * d.hidden;
      const int64_t from = row / d.batch * d.batch + sequences.number(row % d.batch);
      for (int64_t i = 0; i < d.hidden; ++i) to[i] = number == kAbsent ? 0 : operand(p, number)[from * d.hidden + i];
    }
  };
  begin(d.h, d.initialH);
  if (d.cell == kCellLstm) begin(d.c, d.initialC);
  return kDone;
}

template <int W>
AGLOW_INLINE int32_t recurrentSteps(const RecurrentDesc& d, void* const* p, int64_t begin, int64_t end) {
  const int64_t blocks = (d.batch + d.rows - 1) / d.rows, slices = (d.hidden + d.slice - 1) / d.slice;
  const int64_t groups = d.directions * blocks, units = groups * slices, rounds = d.steps * d.phases;
  const bool alone = begin == 0 && end == rounds * units;
  AGLOW_ROLLED for (int64_t i = begin; i < end;) {
    // Alone, one direction and block of rows after the other does all its rounds.
    const int64_t round = alone ? i / slices % rounds : i / units;
    const int64_t group = alone ? i / slices / rounds : i % units / slices;
    // Neighbouring slices are one, so that memory is read in its order for longer.
    const int64_t slice = i % slices, count = fewer(slices - slice, end - i);
    const int64_t block = group % blocks, first = block * d.batch / blocks;
    RecurrentUnit<W>{d,
                     p,
                     group / blocks,
                     first,
                     (block + 1) * d.batch / blocks - first,
                     slice * d.slice,
                     fewer((slice + count) * d.slice, d.hidden),
                     round / d.phases,
                     round % d.phases}
        .run();
    i += count;
  }
  return kDone;
}

}  // namespace aglow::cpu

extern "C" int32_t aglow_recurrent_begin(const aglow::cpu::RecurrentDesc* d, void* const* p, int64_t, int64_t) {
  return aglow::cpu::recurrentBegin(*d, p);
}
extern "C" int32_t aglow_recurrent_pack(const aglow::cpu::RecurrentDesc* d, void* const* p, int64_t begin,
                                        int64_t end) {
  return aglow::cpu::recurrentPack(*d, p, begin, end);
}

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
