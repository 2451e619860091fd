// A linker for the few kinds of sections and relocations that generated code has.
#include <elf.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "backends/cpu/package/image.h"
#include "backends/cpu/package/image_format.h"
#include "support/check.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

enum Part : uint8_t { kText, kConstants, kTables, kParts };

struct Place {
  Part part = kText;
  uint64_t offset = 0;  // in it
};

// A place of this link, or a name that some object, or else the process, defines.
struct Symbol {
  std::optional<Place> place;
  std::string name;
};

struct Relocation {
  Place at;
  uint32_t type = 0;
  Symbol symbol;
  int64_t addend = 0;
};

template <class T>
T read(std::string_view bytes, uint64_t at) {
  AGLOW_CHECK(at <= bytes.size() && sizeof(T) <= bytes.size() - at, "an object ends early");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

class Linker {
public:
  Status add(std::string_view object) {
    const auto header = read<Elf64_Ehdr>(object, 0);
    AGLOW_CHECK(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_REL, "not an object");
    if (header.e_machine != EM_X86_64)
      return Error{.code = Code::UnsupportedFeature,
                   .message = "packages hold code for x86-64 alone",
                   .where = {},
                   .hint = "--emit bundle writes code for other machines"};
    std::vector<Elf64_Shdr> sections;
    for (uint64_t i = 0; i < header.e_shnum; ++i)
      sections.push_back(read<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr)));
    std::vector<std::optional<Place>> places;
    for (const Elf64_Shdr& section : sections) places.push_back(place(object, section));
    for (const Elf64_Shdr& section : sections)
      if (section.sh_type == SHT_SYMTAB) define(object, section, sections, places);
    for (const Elf64_Shdr& section : sections)
      if (section.sh_type == SHT_RELA && places[section.sh_info])
        for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i)
          note(object, read<Elf64_Rela>(object, section.sh_offset + i * sizeof(Elf64_Rela)), sections,
               sections[section.sh_link], places, *places[section.sh_info]);
    return {};
  }

  std::string finish(std::span<const std::string> entries) {
    // Ways out of the block, and tables of addresses, come before anything has its final place.
    for (size_t i = 0; i < relocations_.size(); ++i) {
      if (!relocations_[i].symbol.place) relocations_[i].symbol.place = find(relocations_[i]);
      if (isByTable(relocations_[i].type)) relocations_[i].symbol.place = slotFor(*relocations_[i].symbol.place);
    }
    ImageHeader header{.imports = stubs_.size(), .entries = entries.size(), .nameBytes = names_.size()};
    for (const Relocation& relocation : relocations_) header.moves += relocation.type == R_X86_64_64 ? 1 : 0;
    uint64_t end = sizeof header + header.moves * sizeof(ImageMove) + header.imports * sizeof(ImageImport) +
                   header.entries * sizeof(ImageEntry) + header.nameBytes;
    for (int part = 0; part < kParts; ++part) {
      starts_[part] = end = pageAfter(end);
      end += parts_[part].size();
    }
    header.bytes = pageAfter(end);
    header.textAt = starts_[kText];
    header.textBytes = parts_[kText].size();
    header.tablesAt = starts_[kTables];
    header.tableBytes = parts_[kTables].size();
    std::vector<ImageEntry> starts;
    for (const std::string& name : entries) {
      const auto it = defined_.find(name);
      AGLOW_CHECK(it != defined_.end() && it->second.place.part == kText, "there is no entry " + name);
      starts.push_back(address(it->second.place));
    }
    resolve();
    return block(header, starts);
  }

private:
  static uint64_t pageAfter(uint64_t end) {
    return static_cast<uint64_t>(alignUp(static_cast<int64_t>(end), kImagePage));
  }
  static bool isByTable(uint32_t type) {
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
  }
  uint64_t address(const Place& place) const { return starts_[place.part] + place.offset; }

  Place find(const Relocation& relocation) {
    const std::string name = relocation.symbol.name;
    if (const auto it = defined_.find(name); it != defined_.end()) return it->second.place;
    AGLOW_CHECK(relocation.type == R_X86_64_PLT32 || relocation.type == R_X86_64_64 || isByTable(relocation.type),
                "code reads foreign data: " + name);
    return stub(name);
  }

  // Room in a part; what is there before is filled up with zeros.
  Place room(Part part, uint64_t bytes, uint64_t alignment) {
    std::string& all = parts_[part];
    const auto at = static_cast<uint64_t>(
        alignUp(static_cast<int64_t>(all.size()), static_cast<int64_t>(std::max<uint64_t>(alignment, 1))));
    all.resize(at + bytes);
    return {part, at};
  }

  std::optional<Place> place(std::string_view object, const Elf64_Shdr& section) {
    const bool loaded = section.sh_type == SHT_PROGBITS || section.sh_type == SHT_NOBITS;
    if (!loaded || (section.sh_flags & SHF_ALLOC) == 0) return std::nullopt;
    AGLOW_CHECK(section.sh_addralign <= kImagePage, "a section is aligned to more than a page");
    const Part part = (section.sh_flags & SHF_EXECINSTR) != 0 ? kText
                      : (section.sh_flags & SHF_WRITE) != 0   ? kTables
                                                              : kConstants;
    const Place place = room(part, section.sh_size, section.sh_addralign);
    if (section.sh_type == SHT_PROGBITS && section.sh_size > 0) {
      AGLOW_CHECK(section.sh_offset <= object.size() && section.sh_size <= object.size() - section.sh_offset,
                  "a section ends after its object");
      std::memcpy(parts_[part].data() + place.offset, object.data() + section.sh_offset, section.sh_size);
    }
    return place;
  }

  static std::string nameOf(std::string_view object, const Elf64_Shdr& table, const Elf64_Sym& symbol) {
    const uint64_t at = table.sh_offset + symbol.st_name;
    AGLOW_CHECK(at < object.size(), "a name lies after its object");
    return std::string(object.substr(at, object.find('\0', at) - at));
  }

  void define(std::string_view object, const Elf64_Shdr& table, const std::vector<Elf64_Shdr>& sections,
              const std::vector<std::optional<Place>>& places) {
    for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = read<Elf64_Sym>(object, table.sh_offset + i * sizeof(Elf64_Sym));
      const auto binding = ELF64_ST_BIND(symbol.st_info);
      if (binding == STB_LOCAL || symbol.st_shndx == SHN_UNDEF) continue;
      AGLOW_CHECK(symbol.st_shndx < places.size() && places[symbol.st_shndx], "a symbol has no section");
      Place at = *places[symbol.st_shndx];
      at.offset += symbol.st_value;
      const bool weak = binding == STB_WEAK;
      const std::string name = nameOf(object, sections[table.sh_link], symbol);
      const auto [it, fresh] = defined_.try_emplace(name, Definition{at, weak});
      AGLOW_CHECK(fresh || weak || it->second.weak, "two objects define " + name);
      if (!fresh && it->second.weak && !weak) it->second = {at, false};
    }
  }

  void note(std::string_view object, const Elf64_Rela& rela, const std::vector<Elf64_Shdr>& sections,
            const Elf64_Shdr& table, const std::vector<std::optional<Place>>& places, Place at) {
    const auto symbol =
        read<Elf64_Sym>(object, table.sh_offset + uint64_t{ELF64_R_SYM(rela.r_info)} * sizeof(Elf64_Sym));
    at.offset += rela.r_offset;
    Relocation relocation{
        .at = at, .type = static_cast<uint32_t>(ELF64_R_TYPE(rela.r_info)), .symbol = {}, .addend = rela.r_addend};
    if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) {
      AGLOW_CHECK(symbol.st_shndx < places.size() && places[symbol.st_shndx], "a symbol has no section");
      relocation.symbol.place = *places[symbol.st_shndx];
      relocation.symbol.place->offset += symbol.st_value;
    } else {
      relocation.symbol.name = nameOf(object, sections[table.sh_link], symbol);
    }
    relocations_.push_back(std::move(relocation));
  }

  // Code that jumps to a function of the process: `jmp *slot(%rip)`.
  Place stub(const std::string& name) {
    const auto it = stubs_.find(name);
    if (it != stubs_.end()) return it->second.code;
    const Place slot = room(kTables, 8, 8), code = room(kText, 8, 8);
    std::memcpy(parts_[kText].data() + code.offset, "\xff\x25\0\0\0\0\xcc\xcc", 8);
    relocations_.push_back({.at = {kText, code.offset + 2}, .type = R_X86_64_PC32, .symbol = {slot, {}}, .addend = -4});
    stubs_[name] = {code, slot, addName(name)};
    return code;
  }

  Place slotFor(const Place& target) {
    const Place slot = room(kTables, 8, 8);
    relocations_.push_back({.at = slot, .type = R_X86_64_64, .symbol = {target, {}}, .addend = 0});
    return slot;
  }

  uint64_t addName(const std::string& name) {
    const uint64_t at = names_.size();
    names_.append(name.c_str(), name.size() + 1);
    return at;
  }

  void resolve() {
    for (const Relocation& relocation : relocations_) {
      std::byte* at = reinterpret_cast<std::byte*>(parts_[relocation.at.part].data()) + relocation.at.offset;
      if (relocation.type == R_X86_64_64) {
        AGLOW_CHECK(relocation.at.part == kTables, "an address lies where nothing is written");
        moves_.push_back({.at = address(relocation.at),
                          .to = address(*relocation.symbol.place) + static_cast<uint64_t>(relocation.addend)});
        continue;
      }
      AGLOW_CHECK(relocation.type == R_X86_64_PC32 || relocation.type == R_X86_64_PLT32 || isByTable(relocation.type),
                  fmt::format("relocations of type {} are not expected", relocation.type));
      const auto distance = static_cast<int64_t>(address(*relocation.symbol.place)) + relocation.addend -
                            static_cast<int64_t>(address(relocation.at));
      const auto narrow = static_cast<int32_t>(distance);
      AGLOW_CHECK(narrow == distance, "code is more than 2 GiB long");
      std::memcpy(at, &narrow, sizeof narrow);
    }
  }

  std::string block(const ImageHeader& header, const std::vector<ImageEntry>& starts) const {
    std::vector<ImageImport> slots;
    for (const auto& [name, out] : stubs_) slots.push_back({.at = address(out.slot), .name = out.name});
    std::string bytes;
    const auto append = [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); };
    append(&header, sizeof header);
    append(moves_.data(), moves_.size() * sizeof(ImageMove));
    append(slots.data(), slots.size() * sizeof(ImageImport));
    append(starts.data(), starts.size() * sizeof(ImageEntry));
    bytes += names_;
    for (int part = 0; part < kParts; ++part) {
      bytes.resize(starts_[part]);
      bytes += parts_[part];
    }
    bytes.resize(header.bytes);
    return bytes;
  }

  struct Definition {
    Place place;
    bool weak = false;
  };
  struct WayOut {
    Place code, slot;
    uint64_t name = 0;
  };

  std::array<std::string, kParts> parts_;
  std::array<uint64_t, kParts> starts_ = {};
  std::map<std::string, Definition> defined_;
  std::map<std::string, WayOut> stubs_;
  std::vector<Relocation> relocations_;
  std::vector<ImageMove> moves_;
  std::string names_;
};

}  // namespace

Result<std::string> linkImage(std::span<const std::string> objects, std::span<const std::string> entries) {
  Linker linker;
  for (const std::string& object : objects) AGLOW_OK(linker.add(object));
  return linker.finish(entries);
}

}  // namespace aglow::codegen
