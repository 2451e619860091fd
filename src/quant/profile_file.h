// Profiles as files: JSON, one line for each value.
#pragma once

#include "quant/profile.h"

namespace aglow::quant {

std::string profileText(const Profile& profile);
// BadNpy where the text is no profile, or one of another version; it says where.
Result<Profile> parseProfile(std::string_view text);

// What was at the path stays there until all is written.
Status writeProfile(const std::string& path, const Profile& profile);
Result<Profile> readProfile(const std::string& path);

}  // namespace aglow::quant
