// Elements to and from the wide domains: a codec per way of storing, one switch that maps kinds to codecs.
#include "tensor/convert.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "support/check.h"
#include "tensor/float_codec.h"

namespace aglow {

namespace {

struct Options {
  bool saturate;
  ScaleRounding rounding;
};

// Towards zero; what does not fit saturates and NaN is 0.
template <class I>
I truncated(double value) {
  using Limits = std::numeric_limits<I>;
  constexpr double kBeyond = 2.0 * static_cast<double>(Limits::max() / 2 + 1);
  if (value >= kBeyond) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return value == value ? static_cast<I>(value) : I{0};
}

template <class D>
D fromDouble(double value) {
  if constexpr (std::is_same_v<D, double>)
    return value;
  else
    return truncated<D>(value);
}

// A double that rounds to a narrow float as the value itself would: where an integer has more bits than a double, the
// last bit kept says whether any below was set.
template <class D>
double forRounding(D value) {
  if constexpr (std::is_same_v<D, double>) {
    return value;
  } else {
    const bool negative = value < D{0};
    const uint64_t magnitude = negative ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    constexpr uint64_t kLow = (1u << 11) - 1;
    double result = static_cast<double>(magnitude);
    if (magnitude >> 53 != 0)
      result = static_cast<double>((magnitude >> 11) | ((magnitude & kLow) != 0 ? 1u : 0u)) * (kLow + 1);
    return negative ? -result : result;
  }
}

template <class T>
struct FloatCodec {
  using Stored = T;
  template <class D>
  static D get(T stored) {
    return fromDouble<D>(static_cast<double>(stored));
  }
  template <class D>
  static T put(D value, Options) {
    return static_cast<T>(value);
  }
};

template <class T, int kBits = std::numeric_limits<T>::digits + std::is_signed_v<T>>
struct IntegerCodec {
  using Stored = T;
  template <class D>
  static D get(T stored) {
    return static_cast<D>(stored);
  }
  template <class D>
  static T put(D value, Options options) {
    if constexpr (!std::is_same_v<D, double>) {
      constexpr int kUnused = 8 * sizeof(T) - kBits;
      return static_cast<T>(static_cast<T>(static_cast<T>(value) << kUnused) >> kUnused);
    } else if constexpr (sizeof(T) >= 4) {
      return truncated<T>(value);
    } else {
      return put(static_cast<int64_t>(truncated<int32_t>(value)), options);
    }
  }
};

struct BoolCodec {
  using Stored = uint8_t;
  template <class D>
  static D get(uint8_t stored) {
    return static_cast<D>(stored != 0);
  }
  template <class D>
  static uint8_t put(D value, Options) {
    return value != D{0} ? 1 : 0;
  }
};

template <FloatFormat F>
struct NarrowCodec {
  using Stored = std::conditional_t<(F.signBit() > 0x80), uint16_t, uint8_t>;
  template <class D>
  static D get(Stored stored) {
    return fromDouble<D>(decodeFloat<F>(stored));
  }
  template <class D>
  static Stored put(D value, Options options) {
    return static_cast<Stored>(encodeFloat<F>(forRounding(value), options.saturate && F.signBit() == 0x80));
  }
};

// Powers of two from 2^-127 to 2^127, and NaN.
struct ScaleCodec {
  using Stored = uint8_t;
  static constexpr int kBias = 127;
  static constexpr int kNan = 0xFF;

  template <class D>
  static D get(uint8_t stored) {
    return fromDouble<D>(stored == kNan ? std::bit_cast<double>(kDoubleNan) : powerOfTwo(stored - kBias));
  }
  template <class D>
  static uint8_t put(D wide, Options options) {
    const double value = forRounding(wide);
    if (!(value >= 0)) return kNan;
    const auto bits = std::bit_cast<uint64_t>(value) & ~kDoubleSign;
    const uint64_t fraction = bits & ((uint64_t{1} << kDoubleMantissa) - 1);
    const uint64_t half = uint64_t{1} << (kDoubleMantissa - 1);
    const bool up = (options.rounding == ScaleRounding::Up && fraction != 0) ||
                    (options.rounding == ScaleRounding::Nearest && fraction >= half);
    const int code = static_cast<int>(bits >> kDoubleMantissa) - kDoubleBias + kBias + (up ? 1 : 0);
    if (code >= 0 && code < kNan) return static_cast<uint8_t>(code);
    if (!options.saturate) return kNan;
    return code < 0 ? 0 : kNan - 1;
  }
};

template <class F>
void withCodec(ElemKind kind, F&& f) {
  using enum ElemKind;
  switch (kind) {
    case Float32:
      return f(FloatCodec<float>{});
    case Float64:
      return f(FloatCodec<double>{});
    case Float16:
      return f(NarrowCodec<kFloat16Format>{});
    case BFloat16:
      return f(NarrowCodec<kBFloat16Format>{});
    case Float8E4M3FN:
      return f(NarrowCodec<kE4M3FNFormat>{});
    case Float8E4M3FNUZ:
      return f(NarrowCodec<kE4M3FNUZFormat>{});
    case Float8E5M2:
      return f(NarrowCodec<kE5M2Format>{});
    case Float8E5M2FNUZ:
      return f(NarrowCodec<kE5M2FNUZFormat>{});
    case Float8E8M0:
      return f(ScaleCodec{});
    case Float4E2M1:
      return f(NarrowCodec<kE2M1Format>{});
    case Int2:
      return f(IntegerCodec<int8_t, 2>{});
    case Int4:
      return f(IntegerCodec<int8_t, 4>{});
    case Int8:
    case QInt8:
      return f(IntegerCodec<int8_t>{});
    case Int16:
    case QInt16:
      return f(IntegerCodec<int16_t>{});
    case Int32:
    case QInt32:
      return f(IntegerCodec<int32_t>{});
    case Int64:
      return f(IntegerCodec<int64_t>{});
    case UInt2:
      return f(IntegerCodec<uint8_t, 2>{});
    case UInt4:
      return f(IntegerCodec<uint8_t, 4>{});
    case UInt8:
    case QUInt8:
      return f(IntegerCodec<uint8_t>{});
    case UInt16:
      return f(IntegerCodec<uint16_t>{});
    case UInt32:
      return f(IntegerCodec<uint32_t>{});
    case UInt64:
      return f(IntegerCodec<uint64_t>{});
    case Bool:
      return f(BoolCodec{});
  }
  AGLOW_CHECK(false, "no such element kind");
}

// Elements are copied in and out, so their bytes need no alignment and no C++ object of their type.
template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

}  // namespace

Domain domainOf(ElemKind kind) {
  switch (elemInfo(kind).cls) {
    case ElemClass::Float:
      return Domain::Float;
    case ElemClass::Signed:
    case ElemClass::Quantized:
      return Domain::Signed;
    case ElemClass::Unsigned:
    case ElemClass::Bool:
      break;
  }
  return Domain::Unsigned;
}

template <class D>
void widen(ElemKind kind, const std::byte* data, int64_t first, int64_t count, int64_t stride, D* out) {
  withCodec(kind, [=](auto codec) {
    using Codec = decltype(codec);
    using Stored = typename Codec::Stored;
    constexpr auto kSize = static_cast<int64_t>(sizeof(Stored));
    const std::byte* from = data + first * kSize;
    // A step known to the compiler is what lets it use vectors.
    if (stride == 1) {
      for (int64_t i = 0; i < count; ++i) out[i] = Codec::template get<D>(load<Stored>(from + i * kSize));
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = Codec::template get<D>(load<Stored>(from + i * stride * kSize));
    }
  });
}

template <class D>
void narrow(ElemKind kind, const D* values, int64_t count, std::byte* data, int64_t first, bool saturate,
            ScaleRounding rounding) {
  withCodec(kind, [=](auto codec) {
    using Codec = decltype(codec);
    constexpr auto kSize = static_cast<int64_t>(sizeof(typename Codec::Stored));
    std::byte* to = data + first * kSize;
    for (int64_t i = 0; i < count; ++i) {
      const auto stored = Codec::put(values[i], Options{saturate, rounding});
      std::memcpy(to + i * kSize, &stored, sizeof(stored));
    }
  });
}

template void widen(ElemKind, const std::byte*, int64_t, int64_t, int64_t, double*);
template void widen(ElemKind, const std::byte*, int64_t, int64_t, int64_t, int64_t*);
template void widen(ElemKind, const std::byte*, int64_t, int64_t, int64_t, uint64_t*);
template void narrow(ElemKind, const double*, int64_t, std::byte*, int64_t, bool, ScaleRounding);
template void narrow(ElemKind, const int64_t*, int64_t, std::byte*, int64_t, bool, ScaleRounding);
template void narrow(ElemKind, const uint64_t*, int64_t, std::byte*, int64_t, bool, ScaleRounding);

double floatFromBits(ElemKind kind, uint64_t bits) {
  AGLOW_CHECK(isFloat(kind), "bits of a kind that is not a float");
  double value = 0;
  widen(kind, reinterpret_cast<const std::byte*>(&bits), 0, 1, 1, &value);
  return value;
}

uint64_t floatToBits(ElemKind kind, double value, bool saturate, ScaleRounding rounding) {
  AGLOW_CHECK(isFloat(kind), "bits of a kind that is not a float");
  uint64_t bits = 0;
  narrow(kind, &value, 1, reinterpret_cast<std::byte*>(&bits), 0, saturate, rounding);
  return bits;
}

}  // namespace aglow
