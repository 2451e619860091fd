// JPEG by libjpeg. Its faults leave by a jump: between where it is set and where it lands lies nothing to destroy.
#include "media/formats.h"

#ifdef AGLOW_JPEG
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <csetjmp>
#endif

namespace aglow::media {

#ifdef AGLOW_JPEG

namespace {

constexpr std::string_view kName = "JPEG";
// A progressive file may repeat scans, each as much work as the whole image: this many pixels in all of them.
constexpr int64_t kMaxScanned = int64_t{1} << 32;

struct Faults {
  jpeg_error_mgr manager;  // first: the library knows only this
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* faults = reinterpret_cast<Faults*>(info->err);
  info->err->format_message(info, faults->text);
  std::longjmp(faults->jump, 1);
}

void watch(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  const int64_t pixels = int64_t{decoder->image_width} * decoder->image_height;
  if (decoder->input_scan_number * pixels <= kMaxScanned) return;
  auto* faults = reinterpret_cast<Faults*>(info->err);
  std::snprintf(faults->text, sizeof faults->text, "it has %d scans or more, each of %lld pixels",
                decoder->input_scan_number, static_cast<long long>(pixels));
  std::longjmp(faults->jump, 1);
}

void prepare(Faults& faults) {
  jpeg_std_error(&faults.manager);
  faults.manager.error_exit = leave;
  faults.manager.emit_message = [](j_common_ptr, int) {};
  faults.manager.output_message = [](j_common_ptr) {};
}

class Decoder {
public:
  explicit Decoder(File file) : file_(file) { prepare(faults_); }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool readHeader() {
    info_.err = &faults_.manager;
    if (setjmp(faults_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = watch;
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()),
                 static_cast<unsigned long>(file_.size()));
    jpeg_read_header(&info_, TRUE);
    fourInks_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = fourInks_ ? JCS_CMYK : JCS_RGB;
    return true;
  }

  // Rows of `bytes` each.
  bool readRows(uint8_t* to, size_t bytes) {
    if (setjmp(faults_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = to + info_.output_scanline * bytes;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    return true;
  }

  int64_t width() const { return info_.image_width; }
  int64_t height() const { return info_.image_height; }
  bool fourInks() const { return fourInks_; }
  bool inverted() const { return info_.saw_Adobe_marker != 0; }
  Error fault() const { return badImage(kName, faults_.text); }

private:
  File file_;
  Faults faults_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  bool fourInks_ = false;
};

}  // namespace

Result<Image> decodeJpeg(File file) {
  Decoder decoder(file);
  if (!decoder.readHeader()) return decoder.fault();
  AGLOW_TRY(Image image, blankImage(kName, file, decoder.width(), decoder.height()));
  if (!decoder.fourInks()) {
    if (!decoder.readRows(image.samples.data(), static_cast<size_t>(image.width) * 3)) return decoder.fault();
    return image;
  }
  std::vector<uint8_t> inks(static_cast<size_t>(image.width * image.height * 4));
  if (!decoder.readRows(inks.data(), static_cast<size_t>(image.width) * 4)) return decoder.fault();
  for (size_t i = 0; i < image.samples.size() / 3; ++i)
    for (size_t c = 0; c < 3; ++c) {
      const int ink = decoder.inverted() ? inks[4 * i + c] : 255 - inks[4 * i + c];
      const int black = decoder.inverted() ? inks[4 * i + 3] : 255 - inks[4 * i + 3];
      image.samples[3 * i + c] = static_cast<uint8_t>((ink * black + 127) / 255);
    }
  return image;
}

Result<std::string> encodeJpeg(const Image& image) {
  constexpr int kQuality = 95;
  Faults faults{};
  prepare(faults);
  jpeg_compress_struct info{};
  info.err = &faults.manager;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  if (setjmp(faults.jump) != 0) {
    jpeg_destroy_compress(&info);
    std::free(bytes);
    return Error{.code = Code::FileWrite, .message = faults.text};
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(image.samples.data()) +
                info.next_scanline * static_cast<size_t>(image.width * image.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return out;
}

#else

Result<Image> decodeJpeg(File) { return withoutLibrary("JPEG", "libjpeg-dev"); }
Result<std::string> encodeJpeg(const Image&) { return withoutLibrary("JPEG", "libjpeg-dev"); }

#endif

}  // namespace aglow::media
