#include "opencl/compute/search.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include <tenon/support/hash.hpp>
#include <tenon/support/log.hpp>
#include <tenon/support/str.hpp>

#include "opencl/cl_stream.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kFormsMagic = "tenon-forms 1\n";
constexpr int kRounds = 5;

ContentKey key_of(const FormCall& call, const DeviceInfo& info) {
  std::string text = str(info.platform, '\0', info.name, '\0', info.version, '\0', info.driver, '\0');
  for (const auto& form : call.forms) text += str(form->source, '\0');
  for (const std::vector<Dims>* list : {&call.shapes.operands, &call.shapes.results, &call.shapes.others})
    for (const Dims& dims : *list) text += str(Shape(dims), ';');
  return ContentKey::of(text);
}

// The forms of a call, ready to run.
class Trial {
 public:
  Trial(ClStream& stream, const FormCall& call) : stream_(stream), device_(stream.cl_device()), call_(call) {}

  Result<size_t> run() {
    TENON_OK(make_ports());
    std::vector<WantedProgram> wanted;
    for (const auto& form : call_.forms)
      wanted.push_back({&form->source, str("a form of the kernel of ", call_.stage)});
    TENON_TRY(programs, device_.programs());
    TENON_TRY(built, programs->get_all(wanted));
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < call_.forms.size(); ++i) {
      TENON_TRY(taken, time_of(*call_.forms[i], *built[i]));
      if (taken < least) least = taken, best = i;
    }
    return best;
  }

 private:
  Result<void> make_ports() {
    for (const size_t bytes : call_.port_bytes) {
      TENON_TRY(memory, device_.allocate_memory(bytes));
      // Zeros, because new memory may hold denormals, which are slow.
      const cl_uchar zero = 0;
      TENON_OK(stream_.add([&] {
        return check(device_.cl().clEnqueueFillBuffer(stream_.queue(), memory.get(), &zero, 1, 0,
                                                      std::max<size_t>(bytes, 1), 0, nullptr, nullptr),
                     "clEnqueueFillBuffer");
      }));
      ports_.push_back(std::move(memory));
    }
    return {};
  }

  Result<double> time_of(const ComputeKernel& form, const BuiltProgram& program) {
    TENON_TRY(work, form.launch(call_.shapes));
    std::vector<int64_t> words(ports_.size(), 0);
    words.insert(words.end(), {1, work.items});
    words.insert(words.end(), work.numbers.begin(), work.numbers.end());
    const Api& cl = device_.cl();
    const size_t bytes = words.size() * sizeof(int64_t);
    TENON_TRY(memory, device_.allocate_memory(bytes, CL_MEM_READ_ONLY));
    cl_int code = CL_SUCCESS;
    const std::string name = str(kComputeKernel, program.suffix);
    KernelObject kernel(cl.clCreateKernel(program.program->get(), name.c_str(), &code));
    TENON_OK(check(code, "clCreateKernel"), call_.stage);
    TENON_OK(set_arguments(kernel, memory));
    const auto local = static_cast<size_t>(call_.work_group);
    const int64_t items = call_.items_for(work.items * (form.of_group ? call_.work_group : 1));
    const size_t global = (static_cast<size_t>(items) + local - 1) / local * local;
    double least = std::numeric_limits<double>::infinity();
    TENON_OK(stream_.add([&]() -> Result<void> {
      TENON_OK(check(
          cl.clEnqueueWriteBuffer(stream_.queue(), memory.get(), CL_TRUE, 0, bytes, words.data(), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer"));
      // The first round is a warm-up.
      for (int round = 0; round <= kRounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        TENON_OK(check(
            cl.clEnqueueNDRangeKernel(stream_.queue(), kernel.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel"));
        TENON_OK(check(cl.clFinish(stream_.queue()), "clFinish"));
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        if (round > 0) least = std::min(least, taken.count());
      }
      return {};
    }));
    return least;
  }

  Result<void> set_arguments(const KernelObject& kernel, const Memory& words) {
    const auto set = [&](cl_uint index, const auto& value) {
      return check(device_.cl().clSetKernelArg(kernel.get(), index, sizeof value, &value), "clSetKernelArg");
    };
    TENON_OK(set(0, words.get()));
    TENON_OK(set(1, cl_long{0}));
    for (size_t i = 0; i < ports_.size(); ++i) TENON_OK(set(static_cast<cl_uint>(2 + i), ports_[i].get()));
    return {};
  }

  ClStream& stream_;
  ClDevice& device_;
  const FormCall& call_;
  std::vector<Memory> ports_;
};

}  // namespace

FormChoice FormChoice::of(const ContentKey& key, size_t forms, size_t chosen) {
  FormChoice made{{}, key.high, key.low, forms, chosen, 0};
  kFormsMagic.copy(made.magic, sizeof made.magic);
  made.hash = hash_bytes(std::as_bytes(std::span(&made, 1)), key.low);
  return made;
}

std::optional<size_t> FormChoices::find(const ContentKey& key, size_t forms) {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const auto file = files_.load(key);
  if (!file) return std::nullopt;
  FormChoice read;
  if (file->size() == sizeof read) std::memcpy(&read, file->data(), sizeof read);
  const bool fits = file->size() == sizeof read && read.chosen < forms;
  const FormChoice wanted = FormChoice::of(key, forms, fits ? read.chosen : 0);
  if (!fits || std::memcmp(&wanted, &read, sizeof read) != 0) {
    files_.distrusted(key, "it is damaged, or speaks of other forms");
    return std::nullopt;
  }
  ++counts_.from_files;
  return known_[key] = static_cast<size_t>(read.chosen);
}

void FormChoices::keep(const ContentKey& key, size_t forms, size_t chosen) {
  const std::lock_guard lock(mutex_);
  ++counts_.measured;
  known_[key] = chosen;
  const FormChoice choice = FormChoice::of(key, forms, chosen);
  files_.store(key, std::as_bytes(std::span(&choice, 1)));
}

FormChoices::Counts FormChoices::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Result<size_t> fastest_form(ClStream& stream, const FormCall& call) {
  TENON_TRY(choices, stream.cl_device().form_choices());
  const ContentKey key = key_of(call, stream.cl_device().info());
  if (const auto known = choices->find(key, call.forms.size())) return *known;
  TENON_TRY(best, Trial(stream, call).run(), "measuring forms of the kernel of ", call.stage);
  log(LogLevel::info, call.stage, ": form ", best, " of ", call.forms.size(), " is the fastest");
  choices->keep(key, call.forms.size(), best);
  return best;
}

}  // namespace tenon::opencl
