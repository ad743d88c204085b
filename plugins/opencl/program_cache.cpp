#include "opencl/program_cache.hpp"

#include <cstring>
#include <span>
#include <vector>

#include <tenon/support/hash.hpp>
#include <tenon/support/log.hpp>
#include <tenon/support/str.hpp>

#include "opencl/batch.hpp"
#include "opencl/sub_groups.hpp"

namespace tenon::opencl {
namespace {

// Precedes the binary in a file.
struct FileHead {
  char magic[16];
  uint64_t key_high, key_low, bytes, hash;
};
constexpr std::string_view kProgramMagic = "tenon-opencl 1\n";

FileHead head_of(const ContentKey& key, std::span<const std::byte> binary) {
  FileHead head{{}, key.high, key.low, binary.size(), hash_bytes(binary, key.low)};
  kProgramMagic.copy(head.magic, sizeof head.magic);
  return head;
}

// The binary in a file; empty when the file is damaged or has another key.
std::span<const std::byte> binary_in(std::span<const std::byte> file, const ContentKey& key) {
  if (file.size() <= sizeof(FileHead)) return {};
  const auto binary = file.subspan(sizeof(FileHead));
  const FileHead wanted = head_of(key, binary);
  return std::memcmp(&wanted, file.data(), sizeof wanted) == 0 ? binary : std::span<const std::byte>();
}

// Suppresses warnings, which PoCL prints: those about our sources are about what a graph does, such as comparing a
// value with itself. Sources without sub-groups are OpenCL C 1.2 for every device.
std::string build_options(const DeviceInfo& info, const std::string& source) {
  const std::string_view later = info.sub_group_language();
  const bool by_later = !later.empty() && source.find(kSubGroupHead) != std::string::npos;
  return str("-cl-std=", by_later ? later : "CL1.2", " -w",
             info.rounds_divide_and_sqrt() ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

}  // namespace

Binaries binaries_of(const DeviceInfo& info) {
  return info.compiles_at_launch() ? Binaries::of_driver : Binaries::files;
}

ProgramCache::ProgramCache(const Api& cl, const DeviceInfo& info, cl_device_id id, cl_context context, FileCache files,
                           Binaries binaries)
    : cl_(cl), info_(info), id_(id), context_(context), files_(std::move(files)), binaries_(binaries) {}

ProgramCache::Counts ProgramCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

ContentKey ProgramCache::key_of(const std::string& source) const {
  return ContentKey::of(str(source, '\0', build_options(info_, source), '\0', info_.platform, '\0', info_.name, '\0',
                            info_.version, '\0', info_.driver));
}

std::shared_ptr<const BuiltProgram> ProgramCache::known(const ContentKey& key) {
  const std::lock_guard lock(mutex_);
  auto found = programs_[key].lock();
  if (found) ++counts_.from_process;
  return found;
}

// Two threads may both build one; the first one is kept.
std::shared_ptr<const BuiltProgram> ProgramCache::keep(const ContentKey& key,
                                                       std::shared_ptr<const BuiltProgram> made) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const BuiltProgram>& place = programs_[key];
  if (auto other = place.lock()) return other;
  place = made;
  return made;
}

Result<std::shared_ptr<const BuiltProgram>> ProgramCache::get(const std::string& source, std::string_view what) {
  const WantedProgram wanted{&source, std::string(what)};
  TENON_TRY(made, get_all(std::span(&wanted, 1)));
  return std::move(made.front());
}

Result<std::vector<std::shared_ptr<const BuiltProgram>>> ProgramCache::get_all(std::span<const WantedProgram> wanted) {
  std::vector<std::shared_ptr<const BuiltProgram>> programs;
  std::unordered_map<ContentKey, size_t, ContentKeyHash> missing;  // numbers in the batch
  std::vector<const std::string*> sources;
  std::string what;
  for (const WantedProgram& one : wanted) {
    const ContentKey key = key_of(*one.source);
    programs.push_back(known(key));
    if (programs.back() || !missing.emplace(key, sources.size()).second) continue;
    sources.push_back(one.source);
    what += str(what.empty() ? "" : ", ", one.what);
  }
  if (sources.empty()) return programs;
  const bool alone = sources.size() == 1;
  TENON_TRY(program, make(alone ? *sources.front() : batch(sources), what));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (programs[i]) continue;
    const ContentKey key = key_of(*wanted[i].source);
    const std::string suffix = alone ? "" : batch_suffix(missing.at(key));
    programs[i] = keep(key, std::make_shared<const BuiltProgram>(BuiltProgram{program, suffix}));
  }
  return programs;
}

Result<std::shared_ptr<const Program>> ProgramCache::make(const std::string& source, std::string_view what) {
  if (binaries_ == Binaries::of_driver) {
    TENON_TRY(program, build_source(source, what));
    const std::lock_guard lock(mutex_);
    ++counts_.built;
    return std::make_shared<const Program>(std::move(program));
  }
  const ContentKey key = key_of(source);
  auto program = load_binary(key, build_options(info_, source));
  const bool from_file = program.ok();
  if (!from_file) {
    program = build_source(source, what);
    TENON_OK(program.ok() ? Result<void>() : Result<void>(program.error()));
    store_binary(key, *program);
  }
  const std::lock_guard lock(mutex_);
  ++(from_file ? counts_.from_files : counts_.built);
  return std::make_shared<const Program>(*std::move(program));
}

Result<void> ProgramCache::build(const Program& program, const std::string& options, std::string_view what) const {
  const cl_int code = cl_.clBuildProgram(program.get(), 1, &id_, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return {};
  size_t bytes = 0;
  cl_.clGetProgramBuildInfo(program.get(), id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, ' ');
  cl_.clGetProgramBuildInfo(program.get(), id_, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  return error(Code::internal, "device '", info_.name, "' does not compile ", what, ": ", code_text(code), "\n",
               log.c_str());
}

Result<Program> ProgramCache::build_source(const std::string& source, std::string_view what) const {
  const char* text = source.data();
  const size_t bytes = source.size();
  cl_int code = CL_SUCCESS;
  Program program(cl_.clCreateProgramWithSource(context_, 1, &text, &bytes, &code));
  TENON_OK(check(code, "clCreateProgramWithSource"), what);
  TENON_OK(build(program, build_options(info_, source), what));
  return program;
}

Result<Program> ProgramCache::load_binary(const ContentKey& key, const std::string& options) const {
  const auto file = files_.load(key);
  if (!file) return error(Code::not_found, "no file");
  const auto binary = binary_in(*file, key);
  if (binary.empty()) {
    files_.distrusted(key, "it is damaged, or another program's");
    return error(Code::parse, "damaged");
  }
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int code = CL_SUCCESS;
  Program program(cl_.clCreateProgramWithBinary(context_, 1, &id_, &bytes, &data, nullptr, &code));
  auto built = check(code, "clCreateProgramWithBinary");
  if (built.ok()) built = build(program, options, "a stored program");
  if (built.ok()) return program;
  // The driver has changed without a new version number: the new binary replaces the old one.
  log(LogLevel::info, "device '", info_.name,
      "' refuses a stored program, which is built anew: ", built.error().message());
  return built.error();
}

void ProgramCache::store_binary(const ContentKey& key, const Program& program) const {
  size_t bytes = 0;
  cl_int code = cl_.clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
  if (code != CL_SUCCESS || bytes == 0) return;  // the driver provides no binaries
  std::vector<std::byte> file(sizeof(FileHead) + bytes);
  unsigned char* data = reinterpret_cast<unsigned char*>(file.data() + sizeof(FileHead));
  code = cl_.clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, sizeof data, &data, nullptr);
  if (code != CL_SUCCESS) return;
  const FileHead head = head_of(key, std::span(file).subspan(sizeof(FileHead)));
  std::memcpy(file.data(), &head, sizeof head);
  files_.store(key, file);
}

}  // namespace tenon::opencl
