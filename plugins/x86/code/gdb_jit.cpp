#include "x86/code/gdb_jit.hpp"

#include <elf.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>

// Names and fields are defined by GDB, which sets a breakpoint in the function and reads the descriptor.
extern "C" {
struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};
// Hidden, because another compiler in this process may have symbols of these names.
__attribute__((visibility("hidden"), used)) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
__attribute__((visibility("hidden"), used, noinline)) void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}
}

namespace tenon::x86 {
namespace {

enum Action : uint32_t { kNone, kRegister, kUnregister };

struct Entry {
  jit_code_entry entry{};
  std::vector<std::byte> object;
};

struct Entries {
  std::mutex mutex;
  std::map<const void*, Entry> by_address;
  const bool on = [] {
    const char* wish = secure_getenv("TENON_GDB_JIT");
    return !wish || std::string_view(wish) != "0";
  }();

  void tell(Action action, jit_code_entry& entry) {
    __jit_debug_descriptor.relevant_entry = &entry;
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_register_code();
    __jit_debug_descriptor.action_flag = kNone;
  }
};

Entries& entries() {
  static auto* kept = new Entries;  // never destroyed: code may outlive this file's statics
  return *kept;
}

class ElfWriter {
 public:
  template <class T>
  size_t put(const T& value) {
    return put_bytes(&value, sizeof value);
  }
  size_t put_bytes(const void* data, size_t size) {
    const size_t at = bytes.size();
    bytes.resize(at + size);
    std::memcpy(bytes.data() + at, data, size);
    return at;
  }
  std::vector<std::byte> bytes;
};

constexpr std::string_view kSectionNames{"\0.text\0.symtab\0.strtab\0.shstrtab\0", 33};
enum Section : uint16_t { kNull, kText, kSymbols, kStrings, kNames, kSections };

Elf64_Ehdr file_header() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;  // addresses are final
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kNames;
  return header;
}

Elf64_Shdr section(std::string_view name, Elf64_Word type, size_t offset, size_t size) {
  Elf64_Shdr header{};
  header.sh_name = static_cast<Elf64_Word>(kSectionNames.find(name));
  header.sh_type = type;
  header.sh_offset = offset;
  header.sh_size = size;
  header.sh_addralign = 1;
  return header;
}

}  // namespace

std::vector<std::byte> gdb_object(const JitCode& code) {
  const std::string name = code.object().symbol();
  std::string strings(1, '\0');
  strings += name + '\0';
  std::array<Elf64_Sym, 2> symbols{};
  symbols[1].st_name = 1;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbols[1].st_shndx = kText;
  symbols[1].st_size = code.object().code_bytes;
  symbols[1].st_value = reinterpret_cast<uint64_t>(code.address());

  ElfWriter elf;
  elf.put(file_header());
  const size_t symbols_at = elf.put(symbols), strings_at = elf.put_bytes(strings.data(), strings.size());
  const size_t names_at = elf.put_bytes(kSectionNames.data(), kSectionNames.size());
  while (elf.bytes.size() % 8 != 0) elf.put(std::byte{0});

  std::array<Elf64_Shdr, kSections> sections{};
  sections[kText] = section(".text", SHT_NOBITS, 0, code.object().code_bytes);
  sections[kText].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  sections[kText].sh_addr = reinterpret_cast<uint64_t>(code.address());
  sections[kText].sh_addralign = 64;
  sections[kSymbols] = section(".symtab", SHT_SYMTAB, symbols_at, sizeof symbols);
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = 1;  // the first global symbol
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  sections[kStrings] = section(".strtab", SHT_STRTAB, strings_at, strings.size());
  sections[kNames] = section(".shstrtab", SHT_STRTAB, names_at, kSectionNames.size());
  const size_t sections_at = elf.put(sections);
  std::memcpy(elf.bytes.data() + offsetof(Elf64_Ehdr, e_shoff), &sections_at, sizeof sections_at);
  return std::move(elf.bytes);
}

void gdb_add(const JitCode& code) {
  Entries& kept = entries();
  if (!kept.on) return;
  std::vector<std::byte> object = gdb_object(code);
  const std::lock_guard lock(kept.mutex);
  Entry& entry = kept.by_address[code.address()];
  entry.object = std::move(object);
  entry.entry.symfile_addr = reinterpret_cast<const char*>(entry.object.data());
  entry.entry.symfile_size = entry.object.size();
  entry.entry.prev_entry = nullptr;
  entry.entry.next_entry = __jit_debug_descriptor.first_entry;
  if (entry.entry.next_entry) entry.entry.next_entry->prev_entry = &entry.entry;
  __jit_debug_descriptor.first_entry = &entry.entry;
  kept.tell(kRegister, entry.entry);
}

void gdb_remove(const JitCode& code) {
  Entries& kept = entries();
  const std::lock_guard lock(kept.mutex);
  const auto found = kept.by_address.find(code.address());
  if (found == kept.by_address.end()) return;
  jit_code_entry& entry = found->second.entry;
  (entry.prev_entry ? entry.prev_entry->next_entry : __jit_debug_descriptor.first_entry) = entry.next_entry;
  if (entry.next_entry) entry.next_entry->prev_entry = entry.prev_entry;
  kept.tell(kUnregister, entry);
  kept.by_address.erase(found);
}

}  // namespace tenon::x86
