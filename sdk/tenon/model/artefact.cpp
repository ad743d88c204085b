#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <tenon/model/compiled_model.hpp>
#include <tenon/support/hash.hpp>

// The file: magic | format version u64 | manifest bytes u64 | hash of all that follows u64 | manifest (JSON) | blobs.
// The manifest names inputs, outputs, slots and segments; `blob` entries are [offset, bytes] in the file, aligned to
// 64.

namespace tenon {
namespace {

constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'A', 'R', 'T'};
constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 32;
constexpr size_t kAlign = 64;

using Json = nlohmann::json;

size_t aligned(size_t offset) { return (offset + kAlign - 1) / kAlign * kAlign; }

Json describe(const std::vector<ValueInfo>& values) {
  Json out = Json::array();
  for (const ValueInfo& value : values) out.push_back({{"name", value.name}, {"type", value.type.to_string()}});
  return out;
}

Result<std::vector<ValueInfo>> read_values(const Json& json) {
  std::vector<ValueInfo> out;
  for (const Json& entry : json) {
    TENON_TRY(type, parse_type(entry.at("type").get<std::string>()));
    out.push_back({entry.at("name").get<std::string>(), std::move(type)});
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

LayoutReport read_report(const Json& json) {
  LayoutReport report;
  for (const Json& step : json.at("steps")) {
    report.steps.push_back({static_cast<LayoutStep::Kind>(std::clamp(step.at(0).get<int>(), 0, 2)),
                            step.at(1).get<std::string>(), step.at(2).get<std::string>(), step.at(3).get<std::string>(),
                            step.at(4).get<int64_t>(), step.at(5).get<double>(),
                            step.at(6).get<std::vector<std::string>>()});
  }
  report.cost = json.at("cost").get<double>();
  report.kernel_cost = json.at("kernel_cost").get<double>();
  report.lower_bound = json.at("lower_bound").get<double>();
  report.proven = json.at("proven").get<bool>();
  return report;
}

// A file mapped for reading; artefacts' weights are used where they lie.
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
  struct stat status{};
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

// The file that is written beside takes the place of what is there.
Result<void> check_replaceable(const std::string& path) {
  std::error_code status;
  const auto what = std::filesystem::status(path, status).type();
  if (what == std::filesystem::file_type::directory)
    return error(Code::io, "cannot write the artefact '", path, "': it is a folder; name a file");
  if (std::filesystem::exists(path, status) && what != std::filesystem::file_type::regular)
    return error(Code::io, "cannot write the artefact '", path, "': it is not a regular file, and would be replaced");
  return {};
}

}  // namespace

Result<void> CompiledModel::save(const std::string& path) const {
  TENON_OK(check_replaceable(path));
  const Parts& model = parts();
  std::vector<std::string> blobs;
  size_t offset = 0;  // from the start of the blobs; the manifest's length is not known yet
  const auto add_blob = [&](std::string bytes) {
    const Json place = {offset, bytes.size()};
    offset = aligned(offset + bytes.size());
    blobs.push_back(std::move(bytes));
    return place;
  };
  Json manifest = {{"name", model.name},        {"slots", model.slots},   {"inputs", describe(model.inputs)},
                   {"outputs", describe(model.outputs)}, {"output_slots", model.output_slots}};
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
  // Beside the target, then renamed: a reader never sees half a file.
  const std::string temporary = str(path, ".", getpid(), ".tmp");
  std::ofstream file(temporary, std::ios::binary);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(body.data(), static_cast<std::streamsize>(body.size()));
  file.close();
  std::error_code status;
  if (file.good()) std::filesystem::rename(temporary, path, status);
  if (!file.good() || status) {
    std::filesystem::remove(temporary, status);
    return error(Code::io, "cannot write the artefact '", path,
                 "'; is the folder there and writable, and the disk not full?");
  }
  return {};
}

bool CompiledModel::is_artefact(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) return false;
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof kMagic] = {};
  file.read(magic, sizeof magic);
  return file.gcount() == sizeof magic && std::memcmp(magic, kMagic, sizeof magic) == 0;
}

Result<std::unique_ptr<CompiledModel>> CompiledModel::load(const std::string& path, TargetRegistry& registry) {
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
  const size_t blobs_at = aligned(kHeaderBytes + manifest_bytes);

  try {
    const Json manifest = Json::parse(reinterpret_cast<const char*>(body.data()),
                                      reinterpret_cast<const char*>(body.data()) + manifest_bytes);
    const auto blob = [&](const Json& place) -> Result<std::span<std::byte>> {
      const uint64_t offset = place.at(0).get<uint64_t>(), bytes = place.at(1).get<uint64_t>();
      if (blobs_at > mapping->bytes || offset > mapping->bytes - blobs_at ||
          bytes > mapping->bytes - blobs_at - offset) {
        return damaged("a part reaches beyond the end");
      }
      return std::span<std::byte>(mapping->data + blobs_at + offset, bytes);
    };
    Parts parts;
    parts.name = manifest.at("name").get<std::string>();
    parts.slots = manifest.at("slots").get<size_t>();
    // Slots beyond what the segments and constants could fill would only be memory asked for in vain.
    if (parts.slots > mapping->bytes) return damaged("it claims ", parts.slots, " values");
    parts.output_slots = manifest.at("output_slots").get<std::vector<size_t>>();
    TENON_TRY(inputs, read_values(manifest.at("inputs")));
    TENON_TRY(outputs, read_values(manifest.at("outputs")));
    parts.inputs = std::move(inputs);
    parts.outputs = std::move(outputs);
    for (const Json& entry : manifest.at("constants")) {
      TENON_TRY(type, parse_type(entry.at("type").get<std::string>()));
      const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
      if (!dims || type.element().is_string()) return damaged("a constant is ", type, ", no numbers of a static shape");
      TENON_TRY(bytes, blob(entry.at("blob")));
      TENON_TRY(tensor, Tensor::share(type.element(), *dims, mapping, bytes.data(), bytes.size()), "artefact '", path,
                "'");
      parts.constants.emplace_back(entry.at("slot").get<size_t>(), std::move(tensor));
    }
    for (const Json& entry : manifest.at("segments")) {
      Segment segment{entry.at("target").get<std::string>(), nullptr, entry.at("inputs").get<std::vector<size_t>>(),
                      entry.at("outputs").get<std::vector<size_t>>()};
      TENON_TRY(backend, registry.open(segment.target), "artefact '", path, "'");
      TENON_TRY(bytes, blob(entry.at("blob")));
      TENON_TRY(executable, backend->load(bytes, mapping), "artefact '", path, "', target '", segment.target, "'");
      segment.executable = std::move(executable);
      parts.segments.push_back(std::move(segment));
    }
    for (const Json& entry : manifest.at("placement")) {
      parts.placement.entries.push_back({entry.at(0).get<std::string>(), entry.at(1).get<std::string>(),
                                         entry.at(2).get<std::string>(),
                                         entry.at(3).get<std::vector<std::pair<std::string, std::string>>>()});
    }
    if (manifest.contains("layouts")) parts.layouts = read_report(manifest.at("layouts"));
    return assemble(std::move(parts));
  } catch (const Json::exception& thrown) {
    return damaged(thrown.what());
  }
}

}  // namespace tenon
