// Vectors in kernels: unaligned access, splats, interleaving, and the transposition of small tiles.
#pragma once

#include "backends/cpu/kernels/abi.h"

namespace aglow::cpu {

template <class V, class T>
[[gnu::always_inline]] inline V loadLanes(const T* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}
template <class V, class T>
[[gnu::always_inline]] inline void storeLanes(T* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

template <int... I>
struct LaneList {};
template <class T, T... I>
struct LaneSequence {
  using List = LaneList<I...>;
};
template <int N>
using LanesUpTo = typename __make_integer_seq<LaneSequence, int, N>::List;

template <class V, class T, int... I>
[[gnu::always_inline]] inline V splatLanes(T value, LaneList<I...>) {
  return V{((void)I, value)...};
}
template <class T, int W>
[[gnu::always_inline]] inline Lanes<T, W> splat(T value) {
  return splatLanes<Lanes<T, W>>(value, LanesUpTo<W>{});
}

// Lanes of a and b in turn, from lane `First` on.
template <int First, class V, int... I>
[[gnu::always_inline]] inline V zip(V a, V b, LaneList<I...>) {
  constexpr int kLanes = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(a, b, (I % 2 == 0 ? First + I / 2 : kLanes + First + I / 2)...);
}

// Row r of the result is lane r of all rows. Each stage moves one bit of the row number into the lane number.
template <class T, int N>
[[gnu::always_inline]] inline void transposeLanes(Lanes<T, N> (&rows)[N]) {
  for (int stage = 1; stage < N; stage *= 2) {
    Lanes<T, N> zipped[N];
    for (int i = 0; i < N / 2; ++i) {
      zipped[2 * i] = zip<0>(rows[i], rows[i + N / 2], LanesUpTo<N>{});
      zipped[2 * i + 1] = zip<N / 2>(rows[i], rows[i + N / 2], LanesUpTo<N>{});
    }
    for (int i = 0; i < N; ++i) rows[i] = zipped[i];
  }
}

}  // namespace aglow::cpu
