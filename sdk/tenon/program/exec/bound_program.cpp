#include <tenon/program/exec/bound_program.hpp>

#include <algorithm>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/disassembly_internal.hpp>
#include <tenon/program/exec/machine_internal.hpp>

namespace tenon::program {

namespace {

// Shared by forks.
struct Shared {
  Program program;
  std::vector<std::vector<DimView>> shapes;  // of declared buffers, in order
  std::vector<std::string> names;
  BindOptions options;
  detail::BoundCode bound;
  std::vector<PlannedAllocation> plan;
  std::map<std::string, int64_t> arena_bytes, bound_bytes;

  void report_plan();
  Result<void> check_count(size_t buffers) const {
    if (buffers == names.size()) return {};
    return error(Code::invalid_argument, "program '", program.name, "' declares ", names.size(), " buffers, ", buffers,
                 " are given");
  }
};

void Shared::report_plan() {
  // Converts offsets in regions to offsets in the arena: of worker 0.
  const auto offset_of = [&](int32_t region, const std::string& space) {
    int64_t offset = 0;
    for (; region > 0; region = bound.regions[static_cast<size_t>(region)].outer)
      offset += bound.regions[static_cast<size_t>(region)].offset.at(space);
    return offset;
  };
  for (const detail::PlannedBlock& b : bound.blocks)
    if (b.first <= b.last)
      plan.push_back({b.buffer, b.space, b.offset + offset_of(b.region, b.space), b.bytes, b.first, b.last});
  std::stable_sort(plan.begin(), plan.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  arena_bytes = bound.regions[0].bytes;
  bound_bytes = bound.regions[0].bound;
}

}  // namespace

struct BoundProgram::Impl {
  std::shared_ptr<const Shared> shared;
  std::unique_ptr<detail::Machine> machine;
  std::vector<std::byte*> pointers;  // of run(arguments)

  static Result<std::unique_ptr<Impl>> make(std::shared_ptr<const Shared> shared) {
    auto impl = std::make_unique<Impl>();
    impl->shared = std::move(shared);
    TENON_TRY(machine, detail::Machine::make(impl->shared->program, impl->shared->bound, impl->shared->options));
    impl->machine = std::move(machine);
    return impl;
  }
};

Result<BoundProgram> BoundProgram::bind(const Program& program, const Arguments& shapes, const BindOptions& options) {
  TENON_OK(detail::check_shapes(program, shapes));
  auto shared = std::make_shared<Shared>();
  shared->program = program;
  for (const Buffer& b : program.buffers) {
    if (b.role == Role::local) continue;
    shared->names.push_back(b.name);
    shared->shapes.push_back(shapes.buffers.find(b.name)->second.dims);
  }
  shared->options = options;
  if (shared->options.pool == nullptr) shared->options.pool = &serial();
  const int64_t threads = options.threads > 0 ? options.threads : shared->options.pool->threads();
  TENON_TRY(bound, detail::bind_code(shared->program, shapes, shared->options, threads), "binding");
  shared->bound = std::move(bound);
  shared->report_plan();
  TENON_TRY(impl, Impl::make(std::move(shared)), "binding");
  return BoundProgram(std::move(impl));
}

Result<BoundProgram> BoundProgram::fork() const {
  TENON_TRY(impl, Impl::make(impl_->shared), "another context of program '", impl_->shared->program.name, "'");
  return BoundProgram(std::move(impl));
}

BoundProgram::BoundProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BoundProgram::BoundProgram(BoundProgram&&) noexcept = default;
BoundProgram& BoundProgram::operator=(BoundProgram&&) noexcept = default;
BoundProgram::~BoundProgram() = default;

Result<void> BoundProgram::run(const std::vector<std::byte*>& buffers, RunStatistics* statistics) {
  return run(buffers, RunWith{.statistics = statistics});
}

Result<void> BoundProgram::run(std::span<std::byte* const> buffers, const RunWith& with) {
  TENON_OK(impl_->shared->check_count(buffers.size()));
  return impl_->machine->run(buffers, with);
}

Result<std::vector<SettledCall>> BoundProgram::settle(std::span<std::byte* const> buffers, const RunWith& with) {
  TENON_OK(impl_->shared->check_count(buffers.size()));
  return impl_->machine->settle(buffers, with);
}

Result<std::span<std::byte* const>> BoundProgram::pointers_of(const Arguments& arguments) {
  const std::vector<std::string>& names = impl_->shared->names;
  const Program& program = impl_->shared->program;
  std::vector<std::byte*>& pointers = impl_->pointers;
  pointers.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto given = arguments.buffers.find(names[i]);
    if (given == arguments.buffers.end())
      return error(Code::invalid_argument, "program '", program.name, "': buffer '", names[i], "' is not given");
    if (given->second.dims != impl_->shared->shapes[i])
      return error(Code::invalid_argument, "program '", program.name, "': buffer '", names[i],
                   "' has other dims than those that the program is bound to");
    pointers[i] = given->second.data;
  }
  return pointers;
}

Result<void> BoundProgram::run(const Arguments& arguments, RunStatistics* statistics) {
  TENON_TRY(buffers, pointers_of(arguments));
  return run(buffers, RunWith{.statistics = statistics});
}

const std::vector<PlannedAllocation>& BoundProgram::plan() const { return impl_->shared->plan; }
const std::map<std::string, int64_t>& BoundProgram::arena_bytes() const { return impl_->shared->arena_bytes; }
const std::map<std::string, int64_t>& BoundProgram::arena_lower_bound_bytes() const {
  return impl_->shared->bound_bytes;
}
int64_t BoundProgram::lendable_bytes() const { return impl_->machine->lendable_bytes(); }
int64_t BoundProgram::steps() const { return impl_->shared->bound.steps; }
bool BoundProgram::follows_hints() const { return impl_->machine->follows_hints(); }
std::string BoundProgram::disassembly() const {
  return detail::disassemble(impl_->shared->bound.code, impl_->shared->program);
}

}  // namespace tenon::program
