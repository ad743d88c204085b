#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <tenon/model/compiled_model.hpp>
#include <tenon/model/manifest_internal.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/target/load.hpp>

// File format: magic | format version u64 | manifest bytes u64 | hash of all that follows u64 | manifest (JSON) |
// blobs. The manifest contains inputs, outputs, slots, segments and targets, the latter as the texts of their files;
// `blob` entries are [offset, bytes] in the file, aligned to 64.

namespace tenon {
namespace {

constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'A', 'R', 'T'};
constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 32;
constexpr size_t kAlign = 64;

using Json = nlohmann::json;
using detail::ManifestField;

size_t aligned(size_t offset) { return (offset + kAlign - 1) / kAlign * kAlign; }

Json describe(const std::vector<ValueInfo>& values) {
  Json out = Json::array();
  for (const ValueInfo& value : values) out.push_back({{"name", value.name}, {"type", value.type.to_string()}});
  return out;
}

Result<std::vector<ValueInfo>> read_values(const ManifestField& values) {
  std::vector<ValueInfo> out;
  for (const ManifestField& entry : values.entries()) {
    TENON_TRY(type, parse_type(entry.at("type").text()), "'", entry.way(), ".type'");
    out.push_back({entry.at("name").text(), std::move(type)});
  }
  return out;
}

Json describe(const LayoutReport& report) {
  Json steps = Json::array();
  for (const LayoutStep& step : report.steps) {
    steps.push_back(
        {static_cast<int>(step.kind), step.tensor, step.from, step.to, step.bytes, step.cost, step.forced_by});
  }
  return {{"steps", steps},
          {"cost", report.cost},
          {"kernel_cost", report.kernel_cost},
          {"lower_bound", report.lower_bound},
          {"proven", report.proven}};
}

LayoutReport read_report(const ManifestField& json) {
  LayoutReport report;
  for (const ManifestField& step : json.at("steps").entries()) {
    report.steps.push_back({static_cast<LayoutStep::Kind>(std::clamp<int64_t>(step.at(0).whole(), 0, 2)),
                            step.at(1).text(), step.at(2).text(), step.at(3).text(), step.at(4).whole(),
                            step.at(5).number(), step.at(6).texts()});
  }
  report.cost = json.at("cost").number();
  report.kernel_cost = json.at("kernel_cost").number();
  report.lower_bound = json.at("lower_bound").number();
  report.proven = json.at("proven").flag();
  return report;
}

PlacementReport read_placement(const ManifestField& entries) {
  PlacementReport report;
  for (const ManifestField& entry : entries.entries()) {
    std::vector<std::pair<std::string, std::string>> refusals;
    for (const ManifestField& refusal : entry.at(3).entries())
      refusals.emplace_back(refusal.at(0).text(), refusal.at(1).text());
    report.entries.push_back({entry.at(0).text(), entry.at(1).text(), entry.at(2).text(), std::move(refusals)});
  }
  return report;
}

// A file mapped for reading; weights of artefacts are used in place.
struct Mapping {
  std::byte* data = nullptr;
  size_t bytes = 0;
  ~Mapping() {
    if (data) munmap(data, bytes);
  }
};

Result<std::shared_ptr<Mapping>> map_file(const std::string& path) {
  const auto fail = [&](std::string_view what) {
    return error(Code::io, what, " '", path, "': ", std::strerror(errno));
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return fail("cannot open");
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return error(Code::io, "'", path, "' is not a regular file");
  }
  auto mapping = std::make_shared<Mapping>();
  mapping->bytes = static_cast<size_t>(status.st_size);
  if (mapping->bytes < kHeaderBytes) {
    close(file);
    return error(Code::parse, "'", path, "' has ", mapping->bytes, " bytes, too few for an artefact");
  }
  void* data = mmap(nullptr, mapping->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED) return fail("cannot map");
  mapping->data = static_cast<std::byte*>(data);
  return mapping;
}

uint64_t read_u64(const std::byte* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Checks that the existing path may be replaced by the temporary file.
Result<void> check_replaceable(const std::string& path) {
  std::error_code status;
  const auto what = std::filesystem::status(path, status).type();
  if (what == std::filesystem::file_type::directory)
    return error(Code::io, "cannot write the artefact '", path, "': it is a folder; name a file");
  if (std::filesystem::exists(path, status) && what != std::filesystem::file_type::regular)
    return error(Code::io, "cannot write the artefact '", path, "': it is not a regular file, and would be replaced");
  return {};
}

// Creates or truncates a file and writes it; 0, or the errno of the failure.
int write_file(const std::string& path, std::initializer_list<std::string_view> parts) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return errno;
  int failure = 0;
  for (std::string_view part : parts) {
    while (failure == 0 && !part.empty()) {
      const ssize_t written = write(file, part.data(), part.size());
      if (written >= 0) {
        part.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EINTR) {
        failure = errno;
      }
    }
  }
  if (close(file) != 0 && failure == 0) failure = errno;
  return failure;
}

std::string remedy(int failure, const std::string& folder, size_t bytes) {
  switch (failure) {
    case ENOENT: return str("make the folder '", folder, "' first");
    case ENOTDIR: return str("'", folder, "' is no folder; name one");
    case EACCES:
    case EPERM:
    case EROFS: return str("have the folder '", folder, "' be writable, or name another");
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return str("it takes ", bytes, " bytes: make room, or name another folder than '", folder, "'");
    default: return str("see to the folder '", folder, "', or name another");
  }
}

}  // namespace

Result<void> CompiledModel::save(const std::string& path) const {
  TENON_OK(check_replaceable(path));
  const Parts& model = parts();
  std::vector<std::string> blobs;
  size_t offset = 0;  // from the start of the blobs, since the manifest's length is not known yet
  const auto add_blob = [&](std::string bytes) {
    const Json place = {offset, bytes.size()};
    offset = aligned(offset + bytes.size());
    blobs.push_back(std::move(bytes));
    return place;
  };
  Json manifest = {{"name", model.name},
                   {"slots", model.slots},
                   {"inputs", describe(model.inputs)},
                   {"outputs", describe(model.outputs)},
                   {"output_slots", model.output_slots}};
  manifest["constants"] = Json::array();
  for (const auto& [slot, tensor] : model.constants) {
    if (tensor.element().is_string()) {
      return error(Code::unsupported, "model '", model.name,
                   "' passes a constant of strings to an output; artefacts cannot "
                   "hold that");
    }
    const auto* data = reinterpret_cast<const char*>(tensor.data());
    manifest["constants"].push_back({{"slot", slot},
                                     {"type", Type(tensor.type()).to_string()},
                                     {"blob", add_blob(std::string(data, tensor.bytes()))}});
  }
  manifest["segments"] = Json::array();
  for (const Segment& segment : model.segments) {
    TENON_TRY(bytes, segment.executable->serialize(), "storing the part of model '", model.name, "' on target '",
              segment.target, "'");
    manifest["segments"].push_back({{"target", segment.target},
                                    {"inputs", segment.inputs},
                                    {"outputs", segment.outputs},
                                    {"blob", add_blob(std::move(bytes))}});
  }
  manifest["targets"] = Json::array();
  for (const TargetDescription& target : model.targets) manifest["targets"].push_back(to_yaml(target));
  manifest["placement"] = Json::array();
  for (const auto& entry : model.placement.entries) {
    manifest["placement"].push_back({entry.op, entry.label, entry.target, entry.refusals});
  }

  manifest["layouts"] = describe(model.layouts);

  std::string body = manifest.dump(-1, ' ', false, Json::error_handler_t::replace);
  const size_t manifest_bytes = body.size();
  body.resize(aligned(kHeaderBytes + body.size()) - kHeaderBytes);
  for (const std::string& blob : blobs) {
    body += blob;
    body.resize(aligned(body.size() + kHeaderBytes) - kHeaderBytes);
  }
  std::string header(kMagic, sizeof kMagic);
  for (const uint64_t field : {kVersion, static_cast<uint64_t>(manifest_bytes),
                               hash_bytes(std::as_bytes(std::span(body.data(), body.size())))}) {
    header.append(reinterpret_cast<const char*>(&field), sizeof field);
  }
  // Written to a temporary file in the same folder, then renamed: a reader never sees a partial file.
  const std::string temporary = str(path, ".", getpid(), ".tmp");
  int failure = write_file(temporary, {header, body});
  if (failure == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) failure = errno;
  if (failure == 0) return {};
  unlink(temporary.c_str());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return error(Code::io, "cannot write the artefact '", path, "': ", std::strerror(failure), "; ",
               remedy(failure, folder.empty() ? "." : folder, header.size() + body.size()));
}

bool CompiledModel::is_artefact(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) return false;
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof kMagic] = {};
  file.read(magic, sizeof magic);
  return file.gcount() == sizeof magic && std::memcmp(magic, kMagic, sizeof magic) == 0;
}

namespace {

// The targets of one artefact, opened as its parts need them.
class ArtefactTargets {
 public:
  ArtefactTargets(TargetRegistry& registry, std::span<const TargetDescription> given)
      : registry_(registry), given_(given) {}

  // Reads the artefact's descriptions of its targets. Older artefacts have none.
  Result<void> read(const ManifestField& targets, const std::string& path) {
    for (const ManifestField& entry : targets.entries()) {
      TENON_TRY(description, parse_target(entry.text(), str(path, " (", entry.way(), ")")));
      carried_.push_back(std::move(description));
    }
    return {};
  }

  Result<TargetBackend*> open(const std::string& name) {
    if (const auto known = opened_.find(name); known != opened_.end()) return known->second.backend.get();
    TENON_TRY(description, describe(name));
    TENON_TRY(backend, registry_.open(description));
    Opened& made = opened_[name] = {std::move(description), std::move(backend)};
    return made.backend.get();
  }

  // Descriptions of the targets that were opened.
  std::vector<TargetDescription> used() const {
    std::vector<TargetDescription> out;
    for (const auto& [name, target] : opened_) out.push_back(target.description);
    return out;
  }

  // A description that the caller gave must be used.
  Result<void> check_given() const {
    for (const TargetDescription& given : given_) {
      if (opened_.contains(given.name)) continue;
      std::vector<std::string> names;
      for (const auto& [name, target] : opened_) names.push_back(name);
      return error(Code::invalid_argument, "nothing of it is compiled for target '", given.name, "', only for ", names,
                   "; compile the model for another");
    }
    return {};
  }

 private:
  struct Opened {
    TargetDescription description;
    std::unique_ptr<TargetBackend> backend;
  };

  // The caller's description takes precedence, then the artefact's, then those of installed files.
  Result<TargetDescription> describe(const std::string& name) {
    constexpr std::string_view kRemedy = "--target FILE.yaml, or `targets` of CompiledModel::load";
    const auto given = std::ranges::find(given_, name, &TargetDescription::name);
    if (given != given_.end()) return *given;
    const auto carried = std::ranges::find(carried_, name, &TargetDescription::name);
    if (carried == carried_.end()) {
      auto found = registry_.describe(name);
      if (found.ok() || found.error().code() != Code::not_found) return found;
      return error(Code::not_found, found.error().message(), "; give the file that it was compiled with: ", kRemedy);
    }
    if (carried->driver.find('/') == std::string::npos) return *carried;
    return error(Code::invalid_argument, "target '", name, "' was compiled for with the driver '", carried->driver,
                 "', and which library is loaded here no artefact decides; give the target's file: ", kRemedy);
  }

  TargetRegistry& registry_;
  std::span<const TargetDescription> given_;
  std::vector<TargetDescription> carried_;
  std::map<std::string, Opened> opened_;
};

// Reads everything that the manifest names from the rest of the file.
class ArtefactReader {
 public:
  using Parts = CompiledModel::Parts;

  ArtefactReader(std::shared_ptr<Mapping> mapping, size_t blobs_at, ArtefactTargets& targets)
      : mapping_(std::move(mapping)), blobs_at_(blobs_at), targets_(targets) {}

  Result<Parts> read(const ManifestField& manifest, const std::string& path) {
    Parts parts;
    parts.name = manifest.at("name").text();
    parts.slots = manifest.at("slots").count();
    // More slots than the segments and constants could fill would only waste memory.
    if (parts.slots > mapping_->bytes) return error(Code::parse, "it claims ", parts.slots, " values");
    parts.output_slots = manifest.at("output_slots").counts();
    TENON_TRY(inputs, read_values(manifest.at("inputs")));
    TENON_TRY(outputs, read_values(manifest.at("outputs")));
    parts.inputs = std::move(inputs);
    parts.outputs = std::move(outputs);
    for (const ManifestField& entry : manifest.at("constants").entries()) {
      TENON_TRY(tensor, constant(entry), "'", entry.way(), "'");
      parts.constants.emplace_back(entry.at("slot").count(), std::move(tensor));
    }
    if (manifest.has("targets")) TENON_OK(targets_.read(manifest.at("targets"), path));
    for (const ManifestField& entry : manifest.at("segments").entries()) {
      TENON_TRY(part, segment(entry), "'", entry.way(), "'");
      parts.segments.push_back(std::move(part));
    }
    parts.targets = targets_.used();
    parts.placement = read_placement(manifest.at("placement"));
    if (manifest.has("layouts")) parts.layouts = read_report(manifest.at("layouts"));
    return parts;
  }

 private:
  // A tensor of numbers.
  Result<Tensor> constant(const ManifestField& entry) const {
    TENON_TRY(type, parse_type(entry.at("type").text()));
    const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
    if (!dims || type.element().is_string())
      return error(Code::parse, "a constant is ", type, ", no numbers of a static shape");
    TENON_TRY(bytes, blob(entry.at("blob")));
    return Tensor::share(type.element(), *dims, mapping_, bytes.data(), bytes.size());
  }

  Result<CompiledModel::Segment> segment(const ManifestField& entry) {
    CompiledModel::Segment out{entry.at("target").text(), nullptr, entry.at("inputs").counts(),
                               entry.at("outputs").counts()};
    TENON_TRY(backend, targets_.open(out.target));
    TENON_TRY(bytes, blob(entry.at("blob")));
    TENON_TRY(executable, backend->load(bytes, mapping_), "target '", out.target, "'");
    out.executable = std::move(executable);
    return out;
  }

  Result<std::span<std::byte>> blob(const ManifestField& place) const {
    const uint64_t offset = place.at(0).count(), bytes = place.at(1).count(), most = mapping_->bytes;
    if (blobs_at_ > most || offset > most - blobs_at_ || bytes > most - blobs_at_ - offset)
      return error(Code::parse, "'", place.way(), "' reaches beyond the end of the file, which has ", most, " bytes");
    return std::span<std::byte>(mapping_->data + blobs_at_ + offset, bytes);
  }

  std::shared_ptr<Mapping> mapping_;
  size_t blobs_at_;
  ArtefactTargets& targets_;
};

}  // namespace

Result<std::unique_ptr<CompiledModel>> CompiledModel::load(const std::string& path, TargetRegistry& registry,
                                                           std::span<const TargetDescription> targets) {
  TENON_TRY(mapping, map_file(path));
  const auto damaged = [&](const auto&... what) { return error(Code::parse, "artefact '", path, "': ", what...); };
  if (std::memcmp(mapping->data, kMagic, sizeof kMagic) != 0) return damaged("it does not begin like one");
  const uint64_t version = read_u64(mapping->data + 8), manifest_bytes = read_u64(mapping->data + 16);
  if (version != kVersion)
    return damaged("format version ", version, ", this Tenon reads ", kVersion, "; compile the model again");
  const std::span<const std::byte> body(mapping->data + kHeaderBytes, mapping->bytes - kHeaderBytes);
  if (manifest_bytes > body.size()) return damaged("it is cut off: ", mapping->bytes, " bytes");
  if (hash_bytes(body) != read_u64(mapping->data + 24))
    return damaged("its content does not match its hash; it is cut off or changed");

  const auto not_ours = [&](const auto&... what) {
    return damaged("its manifest, bytes ", kHeaderBytes, " to ", kHeaderBytes + manifest_bytes,
                   " of the file, is not what this Tenon writes: ", what..., "; compile the model again");
  };
  ArtefactTargets used(registry, targets);
  try {
    const auto* text = reinterpret_cast<const char*>(body.data());
    const Json manifest = Json::parse(text, text + manifest_bytes);
    ArtefactReader reader(mapping, aligned(kHeaderBytes + manifest_bytes), used);
    TENON_TRY(parts, reader.read(ManifestField(manifest, ""), path), "artefact '", path, "'");
    TENON_OK(used.check_given(), "artefact '", path, "'");
    return assemble(std::move(parts));
  } catch (const Json::parse_error& thrown) {
    return not_ours("no JSON at byte ", kHeaderBytes + thrown.byte);
  } catch (const Json::out_of_range& thrown) {
    return not_ours("a number is too large: ", thrown.what());
  } catch (const detail::ManifestFault& fault) {
    return not_ours(fault.what);
  }
}

}  // namespace tenon
