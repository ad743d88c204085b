#include <tenon/plugin/inspect.hpp>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include <tenon/support/str.hpp>

namespace tenon {
namespace {

constexpr size_t kMostNoteBytes = size_t{1} << 20;
constexpr size_t kMostHeaders = 4096;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
#error "name this machine's number in elf.h"
#endif

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "arm64";
    case EM_386: return "32-bit x86";
    case EM_ARM: return "32-bit arm";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "PowerPC 64";
    default: return str("machine ", machine);
  }
}

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

// Checks that others cannot put code of theirs there. `what` is "the file" or "its folder".
Result<void> check_owner(const std::string& path, std::string_view what, const struct stat& status) {
  if (status.st_mode & S_IWOTH) {
    return error(Code::plugin, "'", path, "': ", what,
                 " can be written by everybody; chmod o-w it, or load with --insecure");
  }
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return error(Code::plugin, "'", path, "': ", what, " belongs to user ", status.st_uid, ", neither root nor you (",
                 geteuid(), "); load with --insecure if that is meant");
  }
  return {};
}

class ElfFile {
 public:
  ElfFile(int descriptor, size_t bytes, const std::string& path)
      : descriptor_(descriptor), bytes_(bytes), path_(path) {}

  // The content of Tenon's note.
  Result<tenon_plugin_info> read_info() {
    TENON_OK(read_header());
    TENON_TRY(headers, read_program_headers());
    std::optional<tenon_plugin_info> found;
    for (const Elf64_Phdr& header : headers) {
      if (header.p_type != PT_NOTE) continue;
      if (header.p_filesz > kMostNoteBytes) return fault("a note of ", header.p_filesz, " bytes");
      std::vector<std::byte> notes(header.p_filesz);
      TENON_OK(read(header.p_offset, notes.data(), notes.size()));
      TENON_TRY(info, find_note(notes));
      if (info && found) return fault("two notes of Tenon; a library holds one plugin");
      if (info) found = info;
    }
    if (!found) return fault("no Tenon plugin: it has no note '", TENON_NOTE_SECTION, "'; was TENON_PLUGIN forgotten?");
    return *found;
  }

 private:
  template <class... Parts>
  Error fault(const Parts&... parts) const {
    return error(Code::plugin, "'", path_, "': ", parts...);
  }
  Error truncated(std::string_view what, uint64_t end) const {
    return fault("cut off: ", what, " ends at byte ", end, ", the file has ", bytes_);
  }

  Result<void> read(uint64_t offset, void* to, size_t size) {
    size_t done = 0;
    while (done < size) {
      const ssize_t got =
          pread(descriptor_, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return error(Code::io, "cannot read '", path_, "': ", std::strerror(errno));
      if (got == 0) return truncated("what is being read", offset + size);
      done += static_cast<size_t>(got);
    }
    return {};
  }

  Result<void> check_inside(std::string_view what, uint64_t offset, uint64_t size) const {
    if (size > bytes_ || offset > bytes_ - size) {
      return truncated(what, offset > UINT64_MAX - size ? UINT64_MAX : offset + size);
    }
    return {};
  }

  Result<void> read_header() {
    if (bytes_ == 0) return fault("an empty file, no library");
    unsigned char start[EI_NIDENT] = {};
    TENON_OK(read(0, start, std::min(bytes_, sizeof start)));
    if (std::memcmp(start, ELFMAG, std::min<size_t>(bytes_, SELFMAG)) != 0)
      return fault("no shared library (not an ELF file)");
    if (bytes_ < sizeof header_) return truncated("its header", sizeof header_);
    TENON_OK(read(0, &header_, sizeof header_));
    if (header_.e_ident[EI_CLASS] == ELFCLASS32) {
      return fault("built for a 32-bit machine (", machine_name(header_.e_machine), "), this Tenon runs on ",
                   machine_name(kMachine));
    }
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_VERSION] != EV_CURRENT) {
      return fault("an ELF file of class ", header_.e_ident[EI_CLASS], ", version ", header_.e_ident[EI_VERSION]);
    }
    if (header_.e_ident[EI_DATA] != ELFDATA2LSB || header_.e_machine != kMachine) {
      return fault("built for ", machine_name(header_.e_machine),
                   header_.e_ident[EI_DATA] == ELFDATA2MSB ? ", big-endian" : "", "; this Tenon runs on ",
                   machine_name(kMachine));
    }
    if (header_.e_type != ET_DYN) return fault("an ELF file of type ", header_.e_type, ", no shared library");
    return {};
  }

  Result<std::vector<Elf64_Phdr>> read_program_headers() {
    if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 || header_.e_phnum > kMostHeaders) {
      return fault(header_.e_phnum, " program headers of ", header_.e_phentsize, " bytes");
    }
    TENON_OK(check_inside("its table of segments", header_.e_phoff, sizeof(Elf64_Phdr) * header_.e_phnum));
    // The loader does not need sections, but they are at the end: a truncated file lacks them.
    if (header_.e_shnum > 0) {
      TENON_OK(check_inside("its table of sections", header_.e_shoff, uint64_t{header_.e_shentsize} * header_.e_shnum));
    }
    std::vector<Elf64_Phdr> headers(header_.e_phnum);
    TENON_OK(read(header_.e_phoff, headers.data(), sizeof(Elf64_Phdr) * headers.size()));
    bool loads = false;
    for (const Elf64_Phdr& header : headers) {
      if (header.p_type == PT_NULL) continue;
      if (header.p_type == PT_LOAD || header.p_type == PT_DYNAMIC || header.p_type == PT_NOTE) {
        TENON_OK(check_inside("a segment", header.p_offset, header.p_filesz));
      }
      if (header.p_type == PT_LOAD && header.p_memsz < header.p_filesz) {
        return fault("a segment of ", header.p_filesz, " bytes in ", header.p_memsz, " bytes of memory");
      }
      loads = loads || header.p_type == PT_LOAD;
    }
    if (!loads) return fault("nothing in it is loaded");
    return headers;
  }

  Result<std::optional<tenon_plugin_info>> find_note(std::span<const std::byte> notes) {
    constexpr size_t kHead = 12;
    const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
    while (notes.size() >= kHead) {
      uint32_t head[3];  // sizes of name and content, type
      std::memcpy(head, notes.data(), kHead);
      const size_t name_end = kHead + padded(head[0]);
      if (name_end > notes.size() || head[1] > notes.size() - name_end) return fault("a damaged note");
      const std::string_view name(reinterpret_cast<const char*>(notes.data()) + kHead, head[0]);
      if (name == std::string_view(TENON_NOTE_NAME, sizeof TENON_NOTE_NAME) && head[2] == TENON_NOTE_TYPE) {
        return info_from(notes.subspan(name_end, head[1]));
      }
      notes = notes.subspan(std::min(notes.size(), name_end + padded(head[1])));
    }
    return std::optional<tenon_plugin_info>();
  }

  Result<std::optional<tenon_plugin_info>> info_from(std::span<const std::byte> content) {
    tenon_plugin_info info{};
    std::memcpy(&info, content.data(), std::min(content.size(), sizeof info));
    if (std::memcmp(info.magic, TENON_MAGIC, sizeof info.magic) != 0)
      return fault("the note of Tenon begins with other bytes");
    // Checked first, since another version may have another layout.
    if (info.abi_major != TENON_ABI_MAJOR) {
      return fault("speaks version ", info.abi_major, " of the plugin interface, this Tenon speaks ", TENON_ABI_MAJOR,
                   info.abi_major < TENON_ABI_MAJOR ? "; rebuild the plugin" : "; it needs a newer Tenon");
    }
    if (info.min_core_minor > TENON_ABI_MINOR) {
      return fault("needs version ", TENON_ABI_MAJOR, ".", info.min_core_minor,
                   " of the plugin interface, this Tenon has ", TENON_ABI_MAJOR, ".", TENON_ABI_MINOR,
                   "; it needs a newer Tenon");
    }
    if (content.size() < sizeof info || info.struct_size != content.size()) {
      return fault("states ", info.struct_size, " bytes of facts and holds ", content.size(), "; this Tenon knows ",
                   sizeof info);
    }
    return std::optional(info);
  }

  int descriptor_;
  size_t bytes_;
  const std::string& path_;
  Elf64_Ehdr header_{};
};

template <size_t kSize>
Result<std::string> text_of(const PluginFile& file, std::string_view field, const char (&bytes)[kSize]) {
  const size_t length = strnlen(bytes, kSize);
  const std::string_view text(bytes, length);
  if (length == kSize || !is_utf8(text)) {
    return error(Code::plugin, "'", file.path, "': its ", field, " is no text");
  }
  return std::string(text);
}

}  // namespace

Result<PluginFile> inspect_plugin(const std::string& path, bool insecure) {
  PluginFile file;
  file.path = path;
  // Non-blocking: opening a FIFO for reading would wait for a writer.
  const Descriptor descriptor{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)};
  if (descriptor.number < 0) return error(Code::io, "cannot open plugin '", path, "': ", std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor.number, &status) != 0)
    return error(Code::io, "cannot look at plugin '", path, "': ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    return error(Code::plugin, "'", path, "' is ",
                 S_ISDIR(status.st_mode)    ? "a folder"
                 : S_ISFIFO(status.st_mode) ? "a FIFO"
                                            : "a device or socket",
                 ", not a library");
  }
  std::error_code failed;
  file.path = std::filesystem::canonical(path, failed).string();
  if (failed) return error(Code::io, "cannot follow plugin '", path, "': ", failed.message());
  file.device = status.st_dev;
  file.inode = status.st_ino;
  if (!insecure) {
    TENON_OK(check_owner(file.path, "the file", status));
    const std::string folder = std::filesystem::path(file.path).parent_path().string();
    struct stat around {};
    if (stat(folder.c_str(), &around) != 0)
      return error(Code::io, "cannot look at '", folder, "': ", std::strerror(errno));
    TENON_OK(check_owner(file.path, "its folder", around));
  }
  TENON_TRY(info, ElfFile(descriptor.number, static_cast<size_t>(status.st_size), file.path).read_info());
  file.info = info;
  TENON_TRY(name, text_of(file, "name", info.name));
  TENON_TRY(vendor, text_of(file, "vendor", info.vendor));
  TENON_TRY(version, text_of(file, "version", info.version));
  TENON_TRY(targets, text_of(file, "list of targets", info.targets));
  for (const std::string_view target : split(targets, ' ')) {
    if (!target.empty()) file.targets.emplace_back(target);
  }
  file.name = std::move(name);
  file.vendor = std::move(vendor);
  file.version = std::move(version);
  const auto fault = [&](const auto&... parts) { return error(Code::plugin, "'", file.path, "': ", parts...); };
  if (file.name.empty()) return fault("its name is empty");
  if (file.targets.empty()) return fault("plugin '", file.name, "' names no target");
  if (!(info.flags & (TENON_FLAG_PLAIN | TENON_FLAG_MATCHED))) {
    return fault("plugin '", file.name, "' has neither plain slots nor a C++ side (flags ", info.flags, ")");
  }
  if (info.sanitizer != TENON_SANITIZER && info.sanitizer != TENON_SANITIZER_NONE) {
    return fault("plugin '", file.name, "' is built with a sanitizer (kind ", info.sanitizer,
                 "), this Tenon with kind ", uint32_t{TENON_SANITIZER}, "; build both alike");
  }
  return file;
}

}  // namespace tenon
