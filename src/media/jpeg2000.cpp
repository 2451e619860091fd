#include "media/formats.h"

#ifdef AGLOW_JPEG2000
#include <openjpeg.h>

#include <cstring>
#include <memory>
#endif

namespace aglow::media {

#ifdef AGLOW_JPEG2000

namespace {

constexpr std::string_view kName = "JPEG 2000";

struct Source {
  File file;
  size_t at = 0;
};

std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> streamOf(Source& source) {
  std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(opj_stream_default_create(OPJ_TRUE),
                                                                [](opj_stream_t* s) {
                                                                  if (s != nullptr) opj_stream_destroy(s);
                                                                });
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), source.file.size());
  opj_stream_set_read_function(stream.get(), [](void* to, OPJ_SIZE_T count, void* user) -> OPJ_SIZE_T {
    auto* from = static_cast<Source*>(user);
    const size_t size = std::min<size_t>(count, from->file.size() - from->at);
    if (size == 0) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(to, from->file.data() + from->at, size);
    from->at += size;
    return size;
  });
  opj_stream_set_skip_function(stream.get(), [](OPJ_OFF_T count, void* user) -> OPJ_OFF_T {
    auto* from = static_cast<Source*>(user);
    if (count < 0) return -1;
    const size_t size = std::min<size_t>(static_cast<size_t>(count), from->file.size() - from->at);
    from->at += size;
    return static_cast<OPJ_OFF_T>(size);
  });
  opj_stream_set_seek_function(stream.get(), [](OPJ_OFF_T to, void* user) -> OPJ_BOOL {
    auto* from = static_cast<Source*>(user);
    if (to < 0 || static_cast<size_t>(to) > from->file.size()) return OPJ_FALSE;
    from->at = static_cast<size_t>(to);
    return OPJ_TRUE;
  });
  return stream;
}

}  // namespace

Result<Image> decodeJpeg2000(File file) {
  Source source{.file = file};
  const auto stream = streamOf(source);
  const bool boxed = std::to_integer<uint8_t>(file[0]) == 0;
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), opj_destroy_codec);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* read = nullptr;
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE ||
      opj_read_header(stream.get(), codec.get(), &read) == OPJ_FALSE)
    return badImage(kName, "its header is damaged");
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> decoded(read, opj_image_destroy);
  const int64_t width = int64_t{decoded->x1} - decoded->x0, height = int64_t{decoded->y1} - decoded->y0;
  AGLOW_TRY(Image image, blankImage(kName, file, width, height));
  if (decoded->numcomps < 1 || decoded->numcomps > 4)
    return badImage(kName, "it has another number of channels than 1 to 4");
  if (opj_decode(codec.get(), stream.get(), decoded.get()) == OPJ_FALSE)
    return badImage(kName, "its pixels are damaged");
  const bool color = decoded->numcomps >= 3;
  for (size_t c = 0; c < 3; ++c) {
    const opj_image_comp_t& channel = decoded->comps[color ? c : 0];
    if (channel.data == nullptr || channel.w != width || channel.h != height || channel.prec < 1 || channel.prec > 16 ||
        decoded->color_space == OPJ_CLRSPC_SYCC)
      return badImage(kName, "its channels have several sizes, or are of a kind that is not known");
    const int64_t most = (int64_t{1} << channel.prec) - 1, offset = channel.sgnd != 0 ? (most + 1) / 2 : 0;
    for (size_t i = 0; i < image.samples.size() / 3; ++i) {
      const int64_t value = std::min(std::max<int64_t>(channel.data[i] + offset, 0), most);
      image.samples[3 * i + c] = static_cast<uint8_t>((value * 255 + most / 2) / most);
    }
  }
  return image;
}

#else

Result<Image> decodeJpeg2000(File) { return withoutLibrary("JPEG 2000", "libopenjp2-7-dev"); }

#endif

}  // namespace aglow::media
