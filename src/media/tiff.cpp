#include "media/formats.h"

#ifdef AGLOW_TIFF
#include <tiffio.h>

#include <cstring>
#include <memory>
#include <mutex>
#endif

namespace aglow::media {

#ifdef AGLOW_TIFF

namespace {

constexpr std::string_view kName = "TIFF";

// A file in memory, as the library asks for it.
struct Source {
  File file;
  uint64_t at = 0;
};

tmsize_t readSome(thandle_t handle, void* to, tmsize_t count) {
  auto* source = static_cast<Source*>(handle);
  const uint64_t left = source->at < source->file.size() ? source->file.size() - source->at : 0;
  const auto size = static_cast<size_t>(std::min<uint64_t>(left, static_cast<uint64_t>(count)));
  if (size > 0) std::memcpy(to, source->file.data() + source->at, size);
  source->at += size;
  return static_cast<tmsize_t>(size);
}

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto* source = static_cast<Source*>(handle);
  source->at = offset + (whence == SEEK_CUR ? source->at : whence == SEEK_END ? source->file.size() : 0);
  return source->at;
}

void beQuiet() {
  static std::once_flag once;
  std::call_once(once, [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetWarningHandler(nullptr);
  });
}

}  // namespace

Result<Image> decodeTiff(File file) {
  beQuiet();
  Source source{.file = file};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpen(
          "image", "rm", &source, readSome, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; }, seek,
          [](thandle_t) { return 0; },
          [](thandle_t handle) -> toff_t { return static_cast<Source*>(handle)->file.size(); }, nullptr, nullptr),
      TIFFClose);
  if (!tiff) return badImage(kName, "its header is damaged");
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  AGLOW_TRY(Image image, blankImage(kName, file, width, height));
  std::vector<uint32_t> raster(static_cast<size_t>(image.width * image.height));
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1) == 0)
    return badImage(kName, "its pixels are damaged, or of a kind that is not known");
  for (size_t i = 0; i < raster.size(); ++i) {
    image.samples[3 * i] = static_cast<uint8_t>(TIFFGetR(raster[i]));
    image.samples[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(raster[i]));
    image.samples[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(raster[i]));
  }
  return image;
}

#else

Result<Image> decodeTiff(File) { return withoutLibrary("TIFF", "libtiff-dev"); }

#endif

}  // namespace aglow::media
