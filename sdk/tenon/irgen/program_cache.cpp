#include <tenon/irgen/program_cache.hpp>

#include <algorithm>
#include <map>

#include <tenon/program/exec/picture.hpp>

namespace tenon::irgen {

using program::BoundProgram;

namespace {

// Declared buffers have places in a context, in order.
class Places {
 public:
  explicit Places(const program::Program& program) {
    for (const program::Buffer& b : program.buffers)
      places_.push_back(b.role == program::Role::local ? SIZE_MAX : declared_++);
  }
  size_t count() const { return declared_; }
  size_t of(program::BufferId buffer) const { return places_[static_cast<size_t>(buffer)]; }
  std::vector<size_t> of(const std::vector<program::BufferId>& buffers) const {
    std::vector<size_t> places;
    for (const program::BufferId buffer : buffers) places.push_back(of(buffer));
    return places;
  }

 private:
  std::vector<size_t> places_;
  size_t declared_ = 0;
};

}  // namespace

ProgramCache::ProgramCache(GraphProgram program, program::BindOptions options, Check check, Special special)
    : program_(std::move(program)), options_(options), check_(std::move(check)), special_(std::move(special)) {}

std::shared_ptr<BoundShape> ProgramCache::shape(const SymbolValues& scalars) {
  std::vector<int64_t> key;
  for (const std::string& name : program_.program.scalars) {
    const auto value = scalars.find(name);
    key.push_back(value == scalars.end() ? 0 : value->second);
  }
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(shapes_, [&](const auto& s) { return s->scalars == key; });
  if (known != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, known);
    return shapes_.front();
  }
  auto made = std::make_shared<BoundShape>();
  made->scalars = std::move(key);
  if (auto bound = bind(*made, scalars); !bound.ok()) made->refusal = bound.error().to_string();
  shapes_.push_front(made);
  if (shapes_.size() > kMostShapes) shapes_.pop_back();
  return made;
}

Result<void> ProgramCache::bind(BoundShape& shape, const SymbolValues& scalars) const {
  SymbolValues own;
  for (const std::string& name : program_.program.scalars) {
    const auto value = scalars.find(name);
    if (value == scalars.end()) return error(Code::not_found, "the extent ", name, " is not known");
    own.emplace(name, value->second);
  }
  if (check_) TENON_OK(check_(own));
  if (special_) shape.own = special_(own);
  const GraphProgram& program = shape.own ? *shape.own : program_;
  TENON_TRY(arguments, arguments_of(program, own));
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    TENON_TRY(dims, dims_of_input(program, i, own));
    shape.input_dims.push_back(std::move(dims));
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    TENON_TRY(dims, dims_of_output(program, i, own));
    shape.output_dims.push_back(std::move(dims));
  }
  TENON_TRY(bound, BoundProgram::bind(program.program, arguments, options_));
  for (const auto& [space, bytes] : bound.arena_bytes()) shape.arena_bytes += static_cast<size_t>(bytes);
  for (const auto& [space, bytes] : bound.arena_lower_bound_bytes())
    shape.arena_lower_bound_bytes += static_cast<size_t>(bytes);
  shape.lendable_bytes = static_cast<size_t>(bound.lendable_bytes());
  auto first = std::make_unique<ProgramContext>(ProgramContext{std::move(bound), {}});
  const Places places(program.program);
  shape.inputs = places.of(program.inputs);
  shape.outputs = places.of(program.outputs);
  first->buffers.resize(places.count());
  for (const ProgramConstant& c : program.constants)
    first->buffers[places.of(c.buffer)] = const_cast<std::byte*>(c.tensor.data());
  shape.buffers = first->buffers;
  shape.idle.push_back(first.get());
  shape.contexts.push_back(std::move(first));
  return {};
}

Result<ContextLease> ProgramCache::acquire(BoundShape& shape) {
  ProgramContext* taken = shape.spare.take();
  if (taken) return ContextLease(shape, taken);
  const std::lock_guard lock(shape.mutex);
  if (shape.idle.empty()) {
    const ProgramContext& first = *shape.contexts.front();
    TENON_TRY(forked, first.bound.fork());
    shape.contexts.push_back(std::make_unique<ProgramContext>(ProgramContext{std::move(forked), shape.buffers}));
    taken = shape.contexts.back().get();
  } else {
    taken = shape.idle.back();
    shape.idle.pop_back();
  }
  return ContextLease(shape, taken);
}

ContextLease::~ContextLease() {
  if (!shape_ || shape_->spare.give(context_)) return;
  const std::lock_guard lock(shape_->mutex);
  shape_->idle.push_back(context_);
}

size_t ProgramCache::most(size_t BoundShape::*bytes) const {
  size_t most = 0;
  for (const auto& shape : shapes_) most = std::max(most, (*shape).*bytes);
  return most;
}

size_t ProgramCache::arena_bytes() const {
  const std::lock_guard lock(mutex_);
  return most(&BoundShape::arena_bytes);
}

size_t ProgramCache::arena_lower_bound_bytes() const {
  const std::lock_guard lock(mutex_);
  return most(&BoundShape::arena_lower_bound_bytes);
}

size_t ProgramCache::lendable_bytes() const {
  const std::lock_guard lock(mutex_);
  return most(&BoundShape::lendable_bytes);
}

size_t ProgramCache::own_bytes() const {
  const std::lock_guard lock(mutex_);
  return most(&BoundShape::arena_bytes) - most(&BoundShape::lendable_bytes);
}

std::vector<MemoryChart> ProgramCache::memory_charts() const {
  const std::lock_guard lock(mutex_);
  const auto bound = std::ranges::find_if(shapes_, [](const auto& shape) { return shape->refusal.empty(); });
  if (bound == shapes_.end()) return {};
  BoundShape& shape = **bound;
  const std::lock_guard contexts(shape.mutex);
  const program::Program& program = shape.own ? shape.own->program : program_.program;
  return program::memory_charts(program, shape.contexts.front()->bound);
}

}  // namespace tenon::irgen
