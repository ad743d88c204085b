// Plans nests of loops with constant strides from two layouts.
#include <algorithm>
#include <optional>

#include <tenon/support/str.hpp>
#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/reorder_parts_internal.hpp>

namespace tenon {

using detail::Group;
using detail::Nest;
using detail::Part;
using detail::ReorderProgram;

namespace {

// Rows are chosen along the destination's runs if these are at least this long.
constexpr int64_t kLongRun = 8;

int64_t base_bits(const detail::LayoutData& data, int64_t bank_bits) {
  const Layout::Parts& parts = data.parts;
  return data.base_bank * bank_bits + data.base_word * parts.word_bits +
         (parts.lane_msb ? parts.word_bits - parts.element_bits : 0);
}

// The loops for readers: tails as marks, not as separate nests.
void describe(ReorderProgram& program, const std::vector<Group>& groups,
              const std::vector<std::optional<std::vector<int64_t>>>& places) {
  std::vector<std::pair<ReorderLoop, size_t>> loops;  // with the group
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<int64_t>& p = *places[g];
    for (size_t i = p.size(); i-- > 0;) {
      const bool top = i + 1 == p.size();
      const int64_t count = top ? detail::ceil_div(groups[g].extent, p[i]) : p[i + 1] / p[i];
      if (count == 1) continue;
      loops.push_back(
          {{count, groups[g].from.at(p[i]), groups[g].to.at(p[i]), !top && groups[g].extent % p[i + 1] != 0}, g});
    }
  }
  std::ranges::stable_sort(loops, std::greater(), [](const auto& loop) { return std::abs(loop.first.to_bits); });
  for (const auto& [loop, g] : loops) {
    ReorderLoop* last = program.loops.empty() ? nullptr : &program.loops.back();
    const bool nests = last && !loop.tail && !last->tail && last->from_bits == loop.from_bits * loop.count &&
                       last->to_bits == loop.to_bits * loop.count;
    if (nests) {
      *last = {last->count * loop.count, loop.from_bits, loop.to_bits, false};
    } else {
      program.loops.push_back(loop);
    }
    program.tail = program.tail || loop.tail;
  }
}

// All products of the parts. Elements of the group `padded` are followed by zeros; false if that is not possible.
bool build_nests(ReorderProgram& program, const std::vector<std::vector<Part>>& parts, size_t count,
                 std::optional<size_t> padded) {
  const Layout &from = program.from, &to = program.to;
  program.nests.clear();
  for (size_t n = 0; n < count; ++n) {
    Nest nest;
    nest.from_base = base_bits(from.data(), from.bytes_per_bank() * 8);
    nest.to_base = base_bits(to.data(), to.bytes_per_bank() * 8);
    nest.unit = to.element_bits();
    const Part* before_zeros = nullptr;
    size_t rest = n;
    for (size_t g = parts.size(); g-- > 0;) {
      const Part& part = parts[g][rest % parts[g].size()];
      rest /= parts[g].size();
      nest.from_base += part.from;
      nest.to_base += part.to;
      nest.loops.insert(nest.loops.begin(), part.loops.begin(), part.loops.end());
      if (g == padded && part.zeros > 0) before_zeros = &part;
    }
    detail::prepare(nest);
    if (before_zeros &&
        !detail::write_zeros_behind(nest, before_zeros->loops.back().count, before_zeros->zeros, to.element_bits())) {
      return false;
    }
    program.nests.push_back(std::move(nest));
  }
  return true;
}

// Whether offsets are not a sum over variables.
bool is_coupled(const Layout& layout) { return layout.is_ragged() || layout.data().has_xor; }

// False: there would be too many.
bool make_boxes(ReorderProgram& program, const std::vector<Group>& groups) {
  auto nests = detail::box_nests(program.from, program.to, groups);
  if (!nests) return false;
  program.nests = std::move(*nests);
  return true;
}

bool make_products(ReorderProgram& program, const std::vector<Group>& groups) {
  const Layout& to = program.to;
  std::vector<std::vector<Part>> parts;
  std::vector<std::optional<std::vector<int64_t>>> places;
  size_t count = 1;
  for (const Group& group : groups) {
    places.push_back(detail::common_places(group));
    if (places.back()) {
      parts.push_back(detail::nested_parts(group, *places.back(), to.element_bits()));
    } else {
      ReorderPieces pieces;
      auto cut = detail::piecewise_parts(group, pieces);
      if (!cut) return false;
      program.pieces.push_back(std::move(pieces));
      parts.push_back(std::move(*cut));
    }
    count *= parts.back().size();
    if (count > detail::kMaxNests) return false;
  }
  if (program.pieces.empty()) describe(program, groups, places);
  const auto build = [&](std::optional<size_t> padded) { return build_nests(program, parts, count, padded); };
  if (!program.fills || !to.injective()) return build(std::nullopt);
  // The padding of one group is written after its elements.
  for (size_t g = 0; g < parts.size(); ++g) {
    if (parts[g].empty() || parts[g].back().zeros == 0) continue;
    auto zeros = detail::zero_nests(to, groups[g].to.terms[0].variable);
    if (!zeros || !build(g)) continue;
    program.nests.insert(program.nests.end(), zeros->begin(), zeros->end());
    program.fills = false;
    return true;
  }
  build(std::nullopt);
  if (auto zeros = detail::zero_nests(to, -1)) {
    program.nests.insert(program.nests.end(), zeros->begin(), zeros->end());
    program.fills = false;
  }
  return true;
}

// Rows of the indices that have a slot of their own; none if these are not a box.
void plan_rows(ReorderProgram& program, const std::vector<Group>& groups) {
  const Layout& to = program.to;
  Dims domain = to.shape();
  for (const Group& group : groups) {
    int64_t extent = 1;
    for (const int dim : group.dims) extent *= to.shape()[static_cast<size_t>(dim)];
    if (extent == group.extent) continue;
    if (group.dims.size() > 1) return;
    domain[static_cast<size_t>(group.dims[0])] = group.extent;
  }
  if (!detail::RowOffsets::serves(program.from) || !detail::RowOffsets::serves(to)) return;
  const Layout::Run run = to.run();
  const int variable = run.length >= kLongRun ? to.data().find_variable(run.variable[0]) : -1;
  program.rows.dim = variable >= 0 ? static_cast<size_t>(to.variables()[static_cast<size_t>(variable)].dims.back())
                                   : static_cast<size_t>(std::ranges::max_element(domain) - domain.begin());
  program.rows.domain = std::move(domain);
  program.rows.element_bytes = to.element_bits() / 8;
}

// Plans nests, or else rows, or else elements.
void make_parts(ReorderProgram& program) {
  const Layout &from = program.from, &to = program.to;
  std::optional<std::vector<Group>> groups;
  if (from.has_digits() && to.has_digits()) groups = detail::groups_of(from, to);
  if (groups && !detail::keep_least(to, *groups)) return;
  if (groups) {
    const bool boxes = is_coupled(from) || is_coupled(to);
    if (boxes ? make_boxes(program, *groups) : make_products(program, *groups)) return;
    program.loops.clear();
    program.pieces.clear();
    program.nests.clear();
    program.tail = false;
  }
  if (groups || to.injective()) plan_rows(program, groups.value_or(std::vector<Group>()));
}

ReorderKind kind_of(const ReorderProgram& program) {
  if (program.from.same_function(program.to)) return ReorderKind::no_op;
  if (program.nests.empty()) return ReorderKind::elements;
  if (!program.pieces.empty()) return ReorderKind::pieces;
  // Runs that are longer than an element of any machine type count as runs, although they are moved in tiles, too.
  const auto has = [&](Nest::Kind kind) {
    return std::ranges::any_of(program.nests, [&](const Nest& nest) {
      return nest.kind == kind && (kind != Nest::Kind::transpose || nest.unit <= 8);
    });
  };
  if (has(Nest::Kind::bits) || has(Nest::Kind::fields)) return ReorderKind::bits;
  if (has(Nest::Kind::transpose)) return ReorderKind::transpose;
  const auto moving = std::ranges::count_if(program.nests, [](const Nest& n) { return n.kind != Nest::Kind::zeros; });
  return moving == 1 && program.nests[0].loops.empty() ? ReorderKind::copy : ReorderKind::runs;
}

std::string stride_text(int64_t bits, int64_t element_bits) {
  return bits % element_bits == 0 ? str(bits / element_bits) : str(bits, "b");
}

}  // namespace

std::string_view reorder_kind_name(ReorderKind kind) {
  constexpr std::string_view kNames[] = {"no-op", "copy", "runs", "transpose", "bits", "pieces", "elements"};
  return kNames[static_cast<size_t>(kind)];
}

double BandwidthTable::at(int64_t run_bytes) const {
  if (entries.empty()) return 1;
  double found = entries.front().bytes_per_second;
  for (const Entry& entry : entries) {
    if (entry.run_bytes <= run_bytes) found = entry.bytes_per_second;
  }
  return found;
}

const Layout& ReorderPlan::from() const { return program_->from; }
const Layout& ReorderPlan::to() const { return program_->to; }
ReorderKind ReorderPlan::kind() const { return program_->kind; }
const std::vector<ReorderLoop>& ReorderPlan::loops() const { return program_->loops; }
const std::vector<ReorderPieces>& ReorderPlan::pieces() const { return program_->pieces; }
bool ReorderPlan::has_tail() const { return program_->tail; }

std::string ReorderPlan::to_string() const {
  std::string out(reorder_kind_name(kind()));
  const int64_t w = to().element_bits();
  if (!loops().empty() || !pieces().empty()) out += ':';
  for (const ReorderLoop& loop : loops()) {
    out += str(" [", loop.count, loop.tail ? "~ " : " ", stride_text(loop.from_bits, w), " ",
               stride_text(loop.to_bits, w), "]");
  }
  for (const ReorderPieces& pieces : pieces()) {
    out += str(" ", pieces.variable, " every ", pieces.period, ":");
    for (const auto& [start, length] : pieces.pieces) out += str(" [", start, " ", length, "]");
  }
  return out;
}

namespace {

Result<void> check_of_one_tensor(const Layout& from, const Layout& to) {
  if (from.shape() != to.shape()) {
    return error(Code::invalid_argument, "a reorder from shape ", from.shape(), " (", from.to_string(), ") to shape ",
                 to.shape(), " (", to.to_string(), "); both layouts have to be of one tensor");
  }
  if (from.element_bits() != to.element_bits()) {
    return error(Code::invalid_argument, "a reorder from elements of ", from.element_bits(), " bits (",
                 from.to_string(), ") to elements of ", to.element_bits(), " bits (", to.to_string(),
                 "); cast the elements first");
  }
  return {};
}

}  // namespace

Result<ReorderPlan> plan_reorder(const Layout& from, const Layout& to) {
  TENON_OK(check_of_one_tensor(from, to));
  auto program = std::make_shared<ReorderProgram>();
  program->from = from;
  program->to = to;
  program->fills =
      to.fill() && !to.is_view() && (!to.injective() || to.valid_elements() * to.element_bits() != to.bytes() * 8);
  if (to.valid_elements() > 0) make_parts(*program);
  program->kind = kind_of(*program);
  return ReorderPlan(std::move(program));
}

Result<double> reorder_cost(const Layout& from, const Layout& to, const BandwidthTable& bandwidth) {
  TENON_OK(check_of_one_tensor(from, to));
  if (from.same_function(to)) return 0.0;
  const int64_t w = from.element_bits();
  const auto bandwidth_of = [&](const Layout& layout) {
    return bandwidth.at(std::max<int64_t>(layout.run().length * w / 8, 1));
  };
  const auto time = [&](const Layout& side) { return static_cast<double>(side.bytes()) / bandwidth_of(side); };
  return time(from) + time(to) + bandwidth.setup_seconds;
}

}  // namespace tenon
