// PNG by libpng. Its faults leave by a jump, as those of libjpeg do.
#include "media/formats.h"

#ifdef AGLOW_PNG
#include <png.h>

#include <csetjmp>
#include <cstring>
#endif

namespace aglow::media {

#ifdef AGLOW_PNG

namespace {

constexpr std::string_view kName = "PNG";
constexpr png_alloc_size_t kMaxChunk = 8 << 20;  // of texts and profiles, unpacked

struct Faults {
  char text[128];
};

[[noreturn]] void leave(png_structp png, png_const_charp text) {
  auto* faults = static_cast<Faults*>(png_get_error_ptr(png));
  std::strncpy(faults->text, text, sizeof faults->text - 1);
  png_longjmp(png, 1);
}

class Decoder {
public:
  explicit Decoder(File file) : left_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &faults_, leave, [](png_structp, png_const_charp) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Red, green and blue of 8 bits from here on.
  bool readHeader() {
    if (info_ == nullptr || setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, size_t count) {
      auto* self = static_cast<Decoder*>(png_get_io_ptr(png));
      if (count > self->left_.size()) png_error(png, "it ends too early");
      std::memcpy(to, self->left_.data(), count);
      self->left_ = self->left_.subspan(count);
    });
    png_set_chunk_malloc_max(png_, kMaxChunk);
    png_set_user_limits(png_, 1 << 16, 1 << 16);
    png_read_info(png_, info_);
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool readRows(png_bytep* rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    return true;
  }

  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }
  size_t rowBytes() const { return png_get_rowbytes(png_, info_); }
  Error fault() const { return badImage(kName, faults_.text); }

private:
  File left_;
  Faults faults_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

Result<Image> decodePng(File file) {
  Decoder decoder(file);
  if (!decoder.readHeader()) return decoder.fault();
  AGLOW_TRY(Image image, blankImage(kName, file, decoder.width(), decoder.height()));
  if (decoder.rowBytes() != static_cast<size_t>(image.width) * 3)
    return badImage(kName, "its pixels are of no known kind");
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < image.height; ++y) rows.push_back(image.samples.data() + y * image.width * 3);
  if (!decoder.readRows(rows.data())) return decoder.fault();
  return image;
}

Result<std::string> encodePng(const Image& image) {
  png_image plan{};
  plan.version = PNG_IMAGE_VERSION;
  plan.width = static_cast<png_uint_32>(image.width);
  plan.height = static_cast<png_uint_32>(image.height);
  plan.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(plan);
  std::string out(size, '\0');
  if (png_image_write_to_memory(&plan, out.data(), &size, 0, image.samples.data(), 0, nullptr) == 0)
    return Error{.code = Code::FileWrite, .message = plan.message};
  out.resize(size);
  return out;
}

#else

Result<Image> decodePng(File) { return withoutLibrary("PNG", "libpng-dev"); }
Result<std::string> encodePng(const Image&) { return withoutLibrary("PNG", "libpng-dev"); }

#endif

}  // namespace aglow::media
