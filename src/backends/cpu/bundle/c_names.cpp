#include "backends/cpu/bundle/c_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "codegen/clike/c_text.h"
#include "support/hash.h"
#include "support/quote.h"
#include "support/utf8.h"

namespace aglow::codegen {

namespace {

constexpr size_t kLongest = 64;

// Words of C and C++, and functions of the C library that a program with a bundle is likely to link.
constexpr std::string_view kReserved[] = {
    "abs",      "alignas",  "alignof", "and",      "asm",       "auto",     "bool",     "break",     "case",
    "catch",    "ceil",     "char",    "class",    "concept",   "const",    "continue", "cos",       "decltype",
    "default",  "delete",   "div",     "do",       "double",    "else",     "enum",     "erf",       "exit",
    "exp",      "explicit", "export",  "extern",   "false",     "float",    "floor",    "fma",       "fmod",
    "for",      "free",     "friend",  "goto",     "if",        "index",    "inline",   "int",       "log",
    "long",     "main",     "malloc",  "memcpy",   "memmove",   "memset",   "mutable",  "namespace", "new",
    "noexcept", "not",      "nullptr", "operator", "or",        "pow",      "printf",   "private",   "protected",
    "public",   "puts",     "read",    "register", "remainder", "requires", "restrict", "return",    "round",
    "short",    "signed",   "sin",     "sizeof",   "sqrt",      "static",   "struct",   "switch",    "tan",
    "tanh",     "template", "this",    "throw",    "time",      "true",     "trunc",    "try",       "typedef",
    "typeid",   "typename", "union",   "unsigned", "using",     "virtual",  "void",     "volatile",  "while",
    "write",    "xor",
};

// What C files of bundles must leave alone besides: the C library of their headers, and a bit more of the system's;
// words of C++; and those that the kernels of `--emit c` are written in.
constexpr std::string_view kForeign =
    " "
    "BIG_ENDIAN BUFSIZ BYTE_ORDER EOF FILE HUGE_VAL INFINITY LITTLE_ENDIAN NAN NULL a64l abort accept access acos "
    "acosh aligned_alloc alloca and_eq arc4random arc4random_buf arc4random_uniform asin asinh at_quick_exit atan "
    "atan2 atanh atexit atof atoi atol bcmp bcopy bind bitand bitor bsearch bzero calloc cbrt char16_t char32_t "
    "char8_t chdir clearenv clearerr clock clock_t clockid_t close co_await co_return co_yield compl connect "
    "const_cast consteval constexpr constinit copysign cosh ctermid dev_t double_t dprintf drem dup dynamic_cast "
    "environ erfc errno execve exp2 explicit_bzero expm1 fabs fclose fd_mask fdim fdopen feof ferror fflush ffs fgetc "
    "fgetpos fgets fileno finite float_t flockfile fmax fmemopen fmin fopen fork fpclassify fpos_t fprintf fputc "
    "fputs fread freopen frexp ftell ftello ftrylockfile funlockfile fwrite gamma getc getchar getdelim getenv "
    "getline getloadavg getpid gets getsubopt getw gid_t hypot i386 id_t ilogb initstate ino_t int16_t int32_t "
    "int64_t int8_t int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t "
    "int_least8_t intmax_t intptr_t ioctl isalnum isalpha isascii isblank iscntrl isdigit isfinite isgraph isgreater "
    "isgreaterequal isinf isless islessequal islessgreater islower isnan isnormal isprint ispunct isspace isunordered "
    "isupper isxdigit j0 j1 jn key_t kill l64a labs ldexp ldiv lgamma link linux listen llabs lldiv llrint llround "
    "locale_t loff_t log10 log1p log2 logb lrint lround math_errhandling mblen mbstowcs mbtowc memccpy memchr memcmp "
    "mkdtemp mkstemp mkstemps mktemp mmap mode_t modf munmap nan nearbyint nextafter nexttoward not_eq off_t offsetof "
    "on_exit open open_memstream or_eq pause pclose perror pid_t pipe poll popen posix_memalign pselect ptrdiff_t "
    "putc putchar putenv putw qsort quad_t quick_exit raise rand random realloc reallocarray realpath recv "
    "reinterpret_cast remove remquo rename renameat rewind rindex rint rpmatch scalb scalbln scalbn scanf select send "
    "setbuf setbuffer setenv setlinebuf setstate setvbuf signal signbit significand sigset_t sinh size_t sleep "
    "snprintf socket sprintf srand srandom sscanf ssize_t stat static_assert static_cast stderr stdin stdout stpcpy "
    "stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror strlcat strlcpy strlen "
    "strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof "
    "strtok strtol strtold strtoq strtoul strtouq strxfrm sync system tempnam tgamma thread_local time_t timer_t "
    "tmpfile tmpnam toascii tolower toupper typeof typeof_unqual u_char u_int u_int16_t u_int32_t u_int64_t u_int8_t "
    "u_long u_short uid_t uint uint16_t uint32_t uint64_t uint8_t uint_fast16_t uint_fast32_t uint_fast64_t "
    "uint_fast8_t uint_least16_t uint_least32_t uint_least64_t uint_least8_t uintmax_t uintptr_t ulong ungetc unix "
    "unlink unsetenv ushort usleep va_arg va_copy va_end va_list va_start valloc vdprintf vfprintf vfscanf vprintf "
    "vscanf vsnprintf vsprintf vsscanf wait wchar_t wcstombs wctomb xor_eq y0 y1 yn "
    // of kernels
    "ATOMIC_ADD ATOMIC_MAX ATOMIC_SET_ONCE BITS_OF_F32 FUNCTION MEMORY_CHANGES MULADD_f32 MULADD_f64 MULADD_i32 "
    "MULADD_i64 MULADD_u32 MULADD_u64 STEP_ENDS WIDE WIDE_MAX WIDE_MIN f64 stored_f64 ";

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool isKnownWord(std::string_view text) {
  return std::binary_search(std::begin(kReserved), std::end(kReserved), text) ||
         kForeign.find(fmt::format(" {} ", text)) != std::string_view::npos;
}

// The functions and macros of the prelude that kernels have as C: a word after #define or before a bracket, also one
// that is put together for each kind, as add_##K( and K##_of(.
std::set<std::string, std::less<>> preludeWords() {
  constexpr std::string_view kKinds[] = {"f32", "f64", "i32", "i64", "u32", "u64"};
  const std::string_view text = sharedPrelude();
  std::set<std::string, std::less<>> words;
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    const size_t begin = at;
    while (at + 1 < text.size() && (isLetter(text[at]) || isDigit(text[at]) || text[at] == '_' || text[at] == '#'))
      ++at;
    const bool defined = text.substr(0, begin).ends_with("#define ");
    if (at == begin || (text[at] != '(' && !defined)) continue;
    const std::string word(text.substr(begin, at - begin));
    const size_t joined = word.find("##");
    if (joined == std::string::npos)
      words.insert(word);
    else
      for (const std::string_view kind : kKinds)
        words.insert(joined == 1 ? std::string(kind) + word.substr(3) : word.substr(0, joined) + std::string(kind));
  }
  return words;
}

const std::set<std::string, std::less<>>& prelude() {
  static const std::set<std::string, std::less<>> kWords = preludeWords();
  return kWords;
}

bool isForeign(std::string_view text) {
  constexpr std::string_view kKernel = "kernel_";  // of --emit c, by number
  if (text.starts_with(kKernel) && text.size() > kKernel.size() &&
      std::all_of(text.begin() + kKernel.size(), text.end(), isDigit))
    return true;
  // Of mathematics the library has three: sin, sinf and sinl.
  const bool real = text.ends_with('f') || text.ends_with('l');
  return isKnownWord(text) || prelude().contains(text) || (real && isKnownWord(text.substr(0, text.size() - 1)));
}

// Whether a macro of a bundle of this name, with a tensor's name after it, may be another one: WIDE_MIN, BIG_ENDIAN.
bool opensForeign(std::string_view text) {
  const std::string macros = upperCase(std::string(text)) + '_';
  const auto next = prelude().lower_bound(macros);
  return (next != prelude().end() && next->starts_with(macros)) ||
         kForeign.find(' ' + macros) != std::string_view::npos;
}

// What is Aglow's own in C files, and OpenCL's: clCreateBuffer, cl_mem, CL_SUCCESS.
bool isOfOthers(std::string_view text) {
  if (text.size() > 2 && text.starts_with("cl") && text[2] >= 'A' && text[2] <= 'Z') return true;
  const std::string macros = upperCase(std::string(text.substr(0, text.find('_'))));
  return macros == "AGLOW" || macros == "CL";
}

}  // namespace

std::string cIdentifier(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, kLongest)) text += isLetter(c) || isDigit(c) ? c : '_';
  // A leading underscore is the C library's.
  if (text.empty() || !isLetter(text.front())) text = "m" + std::string(text.starts_with('_') ? "" : "_") + text;
  if (name.size() > kLongest || text.size() > kLongest)
    text = fmt::format("{}_{:08x}", text.substr(0, kLongest - 9),
                       static_cast<uint32_t>(hashBytes(name.data(), name.size())));
  if (std::binary_search(std::begin(kReserved), std::end(kReserved), text)) text += '_';
  return text;
}

std::string bundleName(std::string_view name) {
  std::string text = cIdentifier(name);
  if (isOfOthers(text)) text = cIdentifier(fmt::format("m_{}", name));
  return isForeign(text) || opensForeign(text) ? text + '_' : text;
}

bool isFreeName(std::string_view text) { return !isForeign(text) && !isOfOthers(text); }

std::string upperCase(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string uniqueName(const std::string& identifier, std::set<std::string>& taken,
                       std::span<const std::string_view> endings) {
  std::string name = identifier;
  const auto isTaken = [&](std::string_view ending) { return taken.contains(name + std::string(ending)); };
  for (int number = 2; std::any_of(endings.begin(), endings.end(), isTaken); ++number)
    name = fmt::format("{}_{}", identifier, number);
  for (const std::string_view ending : endings) taken.insert(name + std::string(ending));
  return name;
}

std::string cString(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    // Three octal digits end by themselves, whatever follows; two question marks might start a trigraph.
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?';
    text += plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return '"' + text + '"';
}

std::string commentText(std::string_view name) {
  const std::string printable = shown(name);
  std::string text;
  for (size_t at = 0; at < printable.size();) {
    const size_t length = utf8Length(printable, at);
    const char c = printable[at];
    if (length == 0)
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else if ((c == '/' && text.ends_with('*')) || (c == '*' && text.ends_with('/')) || c == '?')
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text += printable.substr(at, length);
    at += std::max<size_t>(length, 1);
  }
  return text;
}

}  // namespace aglow::codegen
