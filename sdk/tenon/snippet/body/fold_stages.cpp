#include <tenon/snippet/body/fold_stages.hpp>

#include <algorithm>
#include <map>

#include <tenon/snippet/body/body_elements.hpp>
#include <tenon/snippet/body/moved_sums_internal.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

constexpr DimSet bit(size_t dim) { return DimSet{1} << dim; }
const Name& reduced_count() {
  static const Name kName("ReducedCount");
  return kName;
}

// Whether the initial value is neutral, so that the fold of the parts' folds is the fold of the whole.
bool begins_with_nothing(const BodyNode& fold, ElementType lane) {
  static const Name kSum("ReduceSum"), kProduct("ReduceProd");
  const auto bits = static_cast<uint64_t>(*fold.attributes.find("initial")->get_if<int64_t>());
  if (fold.op == kSum) return bits == 0;
  if (fold.op == kProduct) return bits == lane_bits(lane, 1);
  return true;  // for extrema, taking a value twice changes nothing
}

// Merges dims that no value distinguishes and between which no port has a gap.
void join_dims(FoldStage& stage, size_t fixed) {
  Body& body = stage.body;
  const auto is_cut_before = [&](const BodyPort& port, size_t d) {
    return std::ranges::any_of(port.cuts, [&](const PortCut& cut) { return cut.dim == static_cast<int>(d); });
  };
  const auto may_join = [&](size_t d) {
    if (body.dims[d].reduced != body.dims[d + 1].reduced) return false;
    for (const BodyValue& value : body.values)
      if ((value.varies >> d & 1) != (value.varies >> (d + 1) & 1)) return false;
    for (const auto* ports : {&body.inputs, &body.outputs})
      for (const BodyPort& port : *ports)
        if (is_cut_before(port, d + 1)) return false;
    return true;
  };
  for (size_t d = body.rank(); d-- > fixed + 1;) {
    if (!may_join(d - 1)) continue;
    BodyDim &outer = body.dims[d - 1], &inner = body.dims[d];
    outer.extent = outer.extent * inner.extent;
    outer.parted |= inner.parted;
    body.dims.erase(body.dims.begin() + static_cast<std::ptrdiff_t>(d));
    stage.dims[d - 1 - fixed] |= stage.dims[d - fixed];
    stage.dims.erase(stage.dims.begin() + static_cast<std::ptrdiff_t>(d - fixed));
    for (BodyValue& value : body.values) value.varies = (value.varies & (bit(d) - 1)) | (value.varies >> (d + 1) << d);
    for (auto* ports : {&body.inputs, &body.outputs})
      for (BodyPort& port : *ports)
        for (PortCut& cut : port.cuts) cut.dim -= cut.dim > static_cast<int>(d) ? 1 : 0;
  }
}

class Maker {
 public:
  Maker(const Body& whole, size_t cut)
      : whole_(whole),
        cut_(cut),
        folded_(whole.reduced_dims()),
        levels_(whole.values.size(), 0),
        memory_of_(whole.values.size(), -1),
        makers_(whole.values.size(), nullptr) {
    for (const BodyNode& node : whole.nodes) {
      int& level = levels_[at(node.result)];
      for (const ValueId operand : node.operands) level = std::max(level, levels_[at(operand)]);
      level += is_reduction(node.op) ? 1 : 0;
      if (is_reduction(node.op)) deepest_ = std::max(deepest_, level);
      makers_[at(node.result)] = &node;
    }
  }

  std::optional<FoldStages> make() {
    if (!may_be_cut()) return std::nullopt;
    std::vector<size_t> few, many;  // outputs computed from folds only, and others
    for (size_t j = 0; j < whole_.outputs.size(); ++j) {
      const DimSet varies = varies_of(whole_.outputs[j].value);
      if ((varies >> cut_ & 1) == 0 && (varies & folded_) != 0) return std::nullopt;
      ((varies & folded_) != 0 ? many : few).push_back(j);
    }
    for (int level = 1; level <= deepest_; ++level) {
      const std::vector<MovedSum> sums = sums_moved_behind(level);
      parts(level, sums);
      const bool last = level + (sums.empty() ? 0 : 1) == deepest_;
      joins(level, sums, last ? few : std::vector<size_t>{});
      level += sums.empty() ? 0 : 1;
    }
    if (!many.empty()) rest(many);
    return std::move(made_);
  }

 private:
  // A stage under construction.
  struct Stage {
    FoldStage stage;
    std::vector<ValueId> made;  // by value of the whole: that of the stage; -1: not yet
    std::vector<FoldStage::Port> inputs, outputs;
  };

  static size_t at(ValueId id) { return static_cast<size_t>(id); }
  DimSet varies_of(ValueId id) const { return whole_.values[at(id)].varies; }
  ElementType lane_of(ValueId id) const { return whole_.values[at(id)].element; }
  bool is_given(const BodyNode& node) const { return is_reduction(node.op) || node.op == reduced_count(); }

  bool may_be_cut() const {
    const bool outermost = cut_ == 0 || (folded_ >> (cut_ - 1) & 1) == 0;
    if (deepest_ == 0 || (folded_ >> cut_ & 1) == 0 || !outermost) return false;
    return std::ranges::all_of(whole_.nodes, [&](const BodyNode& node) {
      if (!is_reduction(node.op)) return true;
      const ValueId operand = node.operands[0];
      return (varies_of(operand) >> cut_ & 1) != 0 && begins_with_nothing(node, lane_of(operand));
    });
  }

  Stage begin(FoldStage::Kind kind, std::string_view suffix) const {
    Stage stage;
    stage.stage.kind = kind;
    stage.stage.body.name = str(whole_.name, ".", suffix);
    stage.made.assign(whole_.values.size(), -1);
    const bool joins = kind == FoldStage::Kind::joins;
    if (joins) stage.stage.body.dims.push_back({.extent = Expr::symbol("parts"), .reduced = true});
    for (size_t d = 0; d < whole_.rank(); ++d) {
      const bool folded = (folded_ >> d & 1) != 0;
      if (joins && folded) continue;
      BodyDim dim{.extent = whole_.dims[d].extent, .reduced = folded && kind == FoldStage::Kind::parts};
      dim.parted = dim.reduced && d == cut_;
      if (dim.parted) dim.extent = Expr::symbol("part");
      stage.stage.body.dims.push_back(std::move(dim));
      stage.stage.dims.push_back(bit(d));
    }
    return stage;
  }
  void end(Stage stage) {
    if (stage.outputs.empty()) return;  // nobody reads what would be folded
    join_dims(stage.stage, stage.stage.kind == FoldStage::Kind::joins ? 1 : 0);
    stage.stage.ports = std::move(stage.inputs);
    stage.stage.ports.insert(stage.stage.ports.end(), stage.outputs.begin(), stage.outputs.end());
    made_.stages.push_back(std::move(stage.stage));
  }

  // In terms of the stage's dims; in a stage that joins parts, kept dims only, after the parts.
  DimSet dims_in(const Stage& stage, DimSet set) const {
    if (stage.stage.kind != FoldStage::Kind::joins) return set;
    DimSet dims = 0;
    size_t place = 1;
    for (size_t d = 0; d < whole_.rank(); ++d) {
      if ((folded_ >> d & 1) != 0) continue;
      if ((set >> d & 1) != 0) dims |= bit(place);
      ++place;
    }
    return dims;
  }
  std::vector<PortCut> cuts_in(const Stage& stage, std::vector<PortCut> cuts) const {
    if (stage.stage.kind == FoldStage::Kind::joins)
      for (PortCut& cut : cuts) {
        int kept = 0;
        for (int d = 0; d < cut.dim; ++d) kept += (folded_ >> d & 1) == 0 ? 1 : 0;
        cut.dim = 1 + kept;
      }
    return cuts;
  }
  BodyValue like(const Stage& stage, ValueId id) const { return {lane_of(id), dims_in(stage, varies_of(id))}; }

  ValueId add_input(Stage& stage, BodyValue like, BodyPort port, FoldStage::Port from) const {
    port.value = stage.stage.body.add_value(like);
    stage.stage.body.inputs.push_back(std::move(port));
    stage.inputs.push_back(from);
    return stage.stage.body.inputs.back().value;
  }
  void add_output(Stage& stage, BodyPort port, FoldStage::Port to) const {
    stage.stage.body.outputs.push_back(std::move(port));
    stage.outputs.push_back(to);
  }

  // Scratch memory for the fold or count that is node `result` of the whole.
  size_t memory_of(ValueId result) {
    int& index = memory_of_[at(result)];
    if (index < 0) {
      index = static_cast<int>(made_.memories.size());
      made_.memories.push_back({.element = lane_of(result),
                                .dims = varies_of(result),
                                .counts = makers_[at(result)]->op == reduced_count()});
    }
    return static_cast<size_t>(index);
  }

  // Adds `wanted`, values of the whole, to the stage: folds are read from memory unless the stage computes them.
  void add(Stage& stage, const std::vector<ValueId>& wanted) {
    std::vector<char> needed(whole_.values.size(), 0);
    for (const ValueId id : wanted) needed[at(id)] = 1;
    for (size_t n = whole_.nodes.size(); n-- > 0;) {
      const BodyNode& node = whole_.nodes[n];
      if (!needed[at(node.result)] || stage.made[at(node.result)] >= 0 || is_given(node)) continue;
      for (const ValueId operand : node.operands) needed[at(operand)] = 1;
    }
    for (size_t i = 0; i < whole_.inputs.size(); ++i) {
      const BodyPort& port = whole_.inputs[i];
      if (!needed[at(port.value)] || stage.made[at(port.value)] >= 0) continue;
      stage.made[at(port.value)] = add_input(
          stage, like(stage, port.value), {.element = port.element, .cuts = cuts_in(stage, port.cuts)}, {.index = i});
    }
    for (const BodyNode& node : whole_.nodes) {
      ValueId& made = stage.made[at(node.result)];
      if (!needed[at(node.result)] || made >= 0) continue;
      if (is_given(node)) {
        made = add_input(stage, like(stage, node.result), {.element = lane_of(node.result)},
                         {.in_memory = true, .index = memory_of(node.result)});
        continue;
      }
      made = append(stage, node, like(stage, node.result));
    }
  }
  ValueId append(Stage& stage, const BodyNode& node, BodyValue like) const {
    BodyNode copy = node;
    for (ValueId& operand : copy.operands) operand = stage.made[at(operand)];
    return stage.stage.body.append(std::move(copy), like, stage.stage.body.nodes);
  }

  template <class F>
  void for_folds(int level, F f) const {
    for (const BodyNode& node : whole_.nodes)
      if (is_reduction(node.op) && levels_[at(node.result)] == level) f(node);
  }

  // The sums that depend on folds of `level`, if each can be rescaled: a part of them is then computed relative to the
  // part's fold.
  std::vector<MovedSum> sums_moved_behind(int level) const {
    std::vector<const BodyNode*> firsts;
    for_folds(level, [&](const BodyNode& fold) { firsts.push_back(&fold); });
    std::vector<MovedSum> sums;
    bool all = true;
    for_folds(level + 1, [&](const BodyNode& fold) {
      const auto sum = moved_sum(whole_, makers_, fold, firsts);
      all &= sum.has_value();
      if (sum) sums.push_back(*sum);
    });
    return all ? sums : std::vector<MovedSum>{};
  }

  // Values in a stage that represent values of the whole, for one part or for all.
  using Standing = std::map<ValueId, ValueId>;
  // `id`, computed from folds and the count of their elements.
  ValueId made_of_folds(Stage& stage, ValueId id, Standing& standing) const {
    if (const auto found = standing.find(id); found != standing.end()) return found->second;
    BodyNode node = *makers_[at(id)];
    DimSet varies = 0;
    for (ValueId& operand : node.operands) {
      operand = made_of_folds(stage, operand, standing);
      varies |= stage.stage.body.values[at(operand)].varies;
    }
    return standing[id] = stage.stage.body.append(std::move(node), {lane_of(id), varies}, stage.stage.body.nodes);
  }
  // The count used for means.
  ValueId count_of(const MovedSum& sum) const { return makers_[at(sum.by)]->operands[1]; }

  size_t add_part(ElementType element, DimSet dims) {
    made_.memories.push_back({.element = element, .dims = dims, .by_part = true});
    return made_.memories.size() - 1;
  }
  // Stores a fold, or sum, of a part to memory.
  size_t put_part(Stage& stage, BodyNode fold, ValueId operand, ValueId of) {
    fold.operands = {operand};
    const ValueId part = stage.stage.body.append(std::move(fold), like(stage, of), stage.stage.body.nodes);
    const size_t memory = add_part(lane_of(of), varies_of(of));
    add_output(stage, {.value = part, .element = lane_of(of)}, {.in_memory = true, .index = memory});
    return memory;
  }
  ValueId part_input(Stage& stage, size_t memory) const {
    const FoldStages::Memory& of = made_.memories[memory];
    return add_input(stage, {of.element, dims_in(stage, of.dims) | 1}, {.element = of.element},
                     {.in_memory = true, .index = memory});
  }

  void parts(int level, const std::vector<MovedSum>& sums) {
    Stage stage = begin(FoldStage::Kind::parts, str("parts", level));
    std::vector<ValueId> operands;
    for_folds(level, [&](const BodyNode& fold) { operands.push_back(fold.operands[0]); });
    add(stage, operands);
    Standing standing;
    for_folds(level, [&](const BodyNode& fold) {
      parts_[fold.result].memory = put_part(stage, fold, stage.made[at(fold.operands[0])], fold.result);
      standing[fold.result] = stage.stage.body.outputs.back().value;
    });
    for (const MovedSum& sum : sums) put_moved(stage, sum, standing);
    end(std::move(stage));
  }

  // The sum of a part, relative to the part's fold.
  void put_moved(Stage& stage, const MovedSum& sum, Standing& standing) {
    Body& body = stage.stage.body;
    BodyNode difference = *sum.difference, term = *sum.term;
    const ValueId by = made_of_folds(stage, sum.by, standing);
    difference.operands = {stage.made[at(difference.operands[0])], by};
    const ValueId apart = body.append(std::move(difference), like(stage, sum.difference->result), body.nodes);
    std::ranges::fill(term.operands, apart);
    const ValueId taken = body.append(std::move(term), like(stage, sum.term->result), body.nodes);
    Part& part = parts_[sum.fold->result];
    part.memory = put_part(stage, *sum.fold, taken, sum.fold->result);
    if (!sum.squares) return;
    part.differences = put_part(stage, *sum.fold, apart, sum.fold->result);
    const ValueId count = count_of(sum);
    part.count = add_part(lane_of(count), 0);
    add_output(stage, {.value = standing.at(count), .element = lane_of(count)},
               {.in_memory = true, .index = part.count});
  }

  // `outputs`: of the whole, computed from folds and kept values only.
  void joins(int level, const std::vector<MovedSum>& sums, const std::vector<size_t>& outputs) {
    Stage stage = begin(FoldStage::Kind::joins, str("joins", level));
    const int last = level + (sums.empty() ? 0 : 1);
    Standing of_parts, of_all;
    for_folds(level, [&](const BodyNode& fold) {
      of_parts[fold.result] = part_input(stage, parts_.at(fold.result).memory);
      of_all[fold.result] = join(stage, fold, of_parts[fold.result]);
    });
    for (const MovedSum& sum : sums) join_moved(stage, sum, of_parts, of_all);
    std::vector<ValueId> wanted;
    for (const size_t j : outputs) wanted.push_back(whole_.outputs[j].value);
    add(stage, wanted);
    for (int of = level; of <= last; ++of)
      for_folds(of, [&](const BodyNode& fold) {
        if (!is_wanted_later(fold.result, last)) return;
        add_output(stage, {.value = stage.made[at(fold.result)], .element = lane_of(fold.result)},
                   {.in_memory = true, .index = memory_of(fold.result)});
      });
    for (const size_t j : outputs) {
      BodyPort port = whole_.outputs[j];
      port.value = stage.made[at(port.value)];
      port.cuts = cuts_in(stage, std::move(port.cuts));
      add_output(stage, std::move(port), {.index = whole_.inputs.size() + j});
    }
    end(std::move(stage));
  }
  ValueId join(Stage& stage, BodyNode fold, ValueId parts) const {
    const ValueId result = fold.result;
    fold.operands = {parts};
    return stage.made[at(result)] =
               stage.stage.body.append(std::move(fold), like(stage, result), stage.stage.body.nodes);
  }

  // Rescales each part's sum to the fold of all parts.
  void join_moved(Stage& stage, const MovedSum& sum, Standing& of_parts, Standing& of_all) {
    const Part& part = parts_.at(sum.fold->result);
    Moments moments{.count = -1, .first = -1, .second = part_input(stage, part.memory)};
    if (sum.squares) {
      const ValueId count = count_of(sum);
      add(stage, {count});
      moments.first = part_input(stage, part.differences);
      moments.count = of_parts[count] = part_input(stage, part.count);
      of_all[count] = stage.made[at(count)];
    }
    const ValueId from = made_of_folds(stage, sum.by, of_parts), to = made_of_folds(stage, sum.by, of_all);
    Appender append(stage.stage.body, 0, sum.fold->label);
    join(stage, *sum.fold,
         sum.squares ? move_moments(append, moments, from, to, /*squares_alone=*/true).second
                     : move_powers(append, moments.second, from, to));
  }

  // Whether it is read by values that vary over folded dims, or by a fold deeper than `level`. Otherwise only outputs
  // of the last such stage read it.
  bool is_wanted_later(ValueId fold, int level) const {
    if (level < deepest_) return true;
    std::vector<char> from_fold(whole_.values.size(), 0);
    from_fold[at(fold)] = 1;
    for (const BodyNode& node : whole_.nodes)
      for (const ValueId operand : node.operands) from_fold[at(node.result)] |= from_fold[at(operand)];
    return std::ranges::any_of(whole_.outputs, [&](const BodyPort& port) {
      return from_fold[at(port.value)] && (varies_of(port.value) & folded_) != 0;
    });
  }

  void rest(const std::vector<size_t>& outputs) {
    Stage stage = begin(FoldStage::Kind::rest, "rest");
    std::vector<ValueId> wanted;
    for (const size_t j : outputs) wanted.push_back(whole_.outputs[j].value);
    add(stage, wanted);
    for (const size_t j : outputs) {
      BodyPort port = whole_.outputs[j];
      port.value = stage.made[at(port.value)];
      add_output(stage, std::move(port), {.index = whole_.inputs.size() + j});
    }
    end(std::move(stage));
  }

  // Scratch memory for the folds of parts; for rescaled sums of squares, also for the differences and the counts.
  struct Part {
    size_t memory = 0, differences = 0, count = 0;
  };

  const Body& whole_;
  const size_t cut_;
  const DimSet folded_;
  int deepest_ = 0;
  std::vector<int> levels_;     // by value: the number of folds on a path to it
  std::vector<int> memory_of_;  // by value
  std::vector<const BodyNode*> makers_;
  std::map<ValueId, Part> parts_;  // by fold of the whole
  FoldStages made_;
};

}  // namespace

Dims FoldStage::extents(const Dims& whole, int64_t parts) const {
  Dims own;
  if (kind == Kind::joins) own.push_back(parts);
  for (const DimSet set : dims) own.push_back(element_count(set, whole));
  return own;
}

size_t FoldStages::Memory::bytes(const Dims& whole, int64_t parts) const {
  return static_cast<size_t>(element_count(dims, whole) * (by_part ? parts : 1) * element.bits() / 8);
}

std::optional<FoldStages> make_fold_stages(const Body& whole, size_t cut) { return Maker(whole, cut).make(); }

}  // namespace tenon::snippet
