// The format of a code object's file: magic, build, key, then the object's fields; sizes are 64-bit words,
// little-endian; a hash of all that at the end.
#include <elf.h>
#include <link.h>

#include <cstring>

#include <tenon/support/hash.hpp>

#include "x86/code/code_cache.hpp"

namespace tenon::x86 {
namespace {

constexpr std::string_view kFileMagic = "tenon-x86-code 1";

// The note NT_GNU_BUILD_ID of the library or program that contains this code, because another build has other emitters.
// Empty when the linker wrote none.
int find_build_id(dl_phdr_info* info, size_t, void* result) {
  const auto here = reinterpret_cast<uintptr_t>(&find_build_id);
  bool holds_us = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    holds_us |= part.p_type == PT_LOAD && here >= begin && here < begin + part.p_memsz;
  }
  for (int i = 0; holds_us && i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    const char* end = at + part.p_memsz;
    while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* text = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        static_cast<std::string*>(result)->assign(text, note.n_descsz);
      at = text + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return holds_us ? 1 : 0;
}

const std::string& build_id() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(find_build_id, &found);
    return found;
  }();
  return id;
}

class FileWriter {
 public:
  void word(uint64_t value) { raw(&value, sizeof value); }
  void text(std::string_view value) {
    word(value.size());
    raw(value.data(), value.size());
  }
  void raw(const void* data, size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
  std::vector<std::byte> bytes;
};

// Reads beyond the end give zeros and empty texts; this is reported at the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  uint64_t word() {
    uint64_t value = 0;
    const auto part = take(sizeof value);
    if (part.size() == sizeof value) std::memcpy(&value, part.data(), sizeof value);
    return value;
  }
  std::string_view text() {
    const auto part = take(word());
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::span<const std::byte> take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const auto part = rest_.first(static_cast<size_t>(size));
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return part;
  }
  size_t left() const { return rest_.size(); }
  bool ok_to_the_end() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

Result<CodeObject> read_fields(Reader& in) {
  CodeObject object;
  object.name = in.text();
  const uint64_t isa = in.word();
  object.isa = isa == 1 ? Isa::avx512 : Isa::avx2;
  object.code_bytes = in.word();
  const std::string_view bytes = in.text();
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  object.bytes.assign(data, data + bytes.size());
  const uint64_t marks = in.word();
  // Each mark takes at least three words.
  if (marks > in.left() / 24) return error(Code::parse, "it states ", marks, " marks in ", in.left(), " bytes");
  for (uint64_t i = 0; i < marks; ++i) {
    const auto offset = static_cast<uint32_t>(in.word());
    const std::string_view label = in.text(), instruction = in.text();
    object.marks.add({offset, label, instruction});
  }
  if (!in.ok_to_the_end() || isa > 1 || object.code_bytes > object.bytes.size())
    return error(Code::parse, "its fields do not fit its size");
  return object;
}

}  // namespace

std::vector<std::byte> write_code_object(const CodeObject& object, const CodeKey& key) {
  FileWriter out;
  out.text(kFileMagic);
  out.text(build_id());
  out.text(key.to_string());
  out.text(object.name);
  out.word(object.isa == Isa::avx512);
  out.word(object.code_bytes);
  out.text({reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()});
  out.word(object.marks.size());
  for (size_t i = 0; i < object.marks.size(); ++i) {
    const CodeMark mark = object.marks[i];
    out.word(mark.offset);
    out.text(mark.label);
    out.text(mark.instruction);
  }
  out.word(hash_bytes(out.bytes));
  return std::move(out.bytes);
}

Result<CodeObject> read_code_object(std::span<const std::byte> bytes, const CodeKey& key) {
  if (bytes.size() < 8) return error(Code::parse, "it has only ", bytes.size(), " bytes");
  const auto body = bytes.first(bytes.size() - 8);
  if (Reader(bytes.last(8)).word() != hash_bytes(body)) return error(Code::parse, "its hash does not fit its contents");
  Reader in(body);
  if (in.text() != kFileMagic) return error(Code::parse, "it is no file of code");
  if (in.text() != build_id() || build_id().empty()) return error(Code::not_found, "another build has written it");
  if (in.text() != key.to_string()) return error(Code::parse, "it holds other code than its name says");
  return read_fields(in);
}

}  // namespace tenon::x86
