// Random problems of layout assignment, and all of their solutions.
#pragma once
#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <tenon/passes/layout_problem.hpp>
#include <tenon/support/str.hpp>

namespace tenon::testing {

struct RandomProblemOptions {
  size_t nodes = 5;
  size_t layouts = 3;
  size_t reach = 4;  // operands come from this many tensors before
  int outputs_in_3 = 1;
};

// Layout 0 has no padding; some tensors are outputs, represented by a last node that needs layout 0.
class ProblemMaker {
 public:
  ProblemMaker(uint64_t seed, RandomProblemOptions options) : random_(seed), options_(options) {}

  LayoutProblem make() {
    for (int i = 0; i < 3; ++i) problem_.costs.push_back(costs());
    for (size_t i = 0; i < 2; ++i) {
      const bool constant = draw(5) == 0;
      add_tensor(constant ? std::nullopt : std::optional(draw(options_.layouts)), constant);
    }
    for (size_t i = 0; i < options_.nodes; ++i) add_node(i);
    const size_t tensors = problem_.tensors.size();
    for (size_t t = 0; t < tensors; ++t) {
      if (t + 1 == tensors || draw(3) < static_cast<size_t>(options_.outputs_in_3)) add_output(t);
    }
    return std::move(problem_);
  }

 private:
  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }
  double cost(size_t below) { return static_cast<double>(draw(below)); }

  LayoutCosts costs() {
    LayoutCosts costs;
    const size_t n = options_.layouts;
    for (size_t l = 0; l < n; ++l) {
      LayoutCosts::Pad pad;
      pad.there = l > 0 && draw(2) == 0;
      pad.scrub = pad.there ? 1 + cost(20) : 0;
      pad.zero_by_reorder = draw(6) > 0;
      costs.pads.push_back(pad);
    }
    for (size_t from = 0; from < n; ++from) {
      for (size_t to = 0; to < n; ++to) costs.reorders.push_back(from == to ? 0 : 1 + cost(60));
    }
    return costs;
  }

  size_t add_tensor(std::optional<size_t> given, bool free = false) {
    problem_.tensors.push_back(
        {str("t", problem_.tensors.size()), draw(problem_.costs.size()), given, free, draw(4) > 0});
    return problem_.tensors.size() - 1;
  }

  void add_node(size_t i) {
    LayoutProblem::Node node{str("n", i), {}, {}, {}};
    const size_t tensors = problem_.tensors.size();
    for (size_t k = 0; k < 1 + draw(3); ++k) {
      node.operands.push_back(tensors - 1 - draw(std::min(tensors, options_.reach)));
    }
    for (size_t k = 0; k < 1 + (draw(4) == 0); ++k) node.results.push_back(add_tensor(std::nullopt));
    const bool oblivious = draw(2) == 0;
    for (size_t k = 0; k < 1 + draw(options_.layouts); ++k)
      node.implementations.push_back(implementation(node, oblivious, k));
    problem_.nodes.push_back(std::move(node));
  }

  LayoutProblem::Implementation implementation(const LayoutProblem::Node& node, bool oblivious, size_t k) {
    LayoutProblem::Implementation impl;
    impl.cost = oblivious ? 0 : cost(100);
    impl.pad = static_cast<PadEffect>(draw(3));
    for (size_t i = 0; i < node.operands.size(); ++i) {
      impl.operands.push_back({oblivious ? k : draw(options_.layouts), !oblivious && draw(2) == 0});
    }
    for (size_t i = 0; i < node.results.size(); ++i) impl.results.push_back(oblivious ? k : draw(options_.layouts));
    return impl;
  }

  void add_output(size_t tensor) {
    problem_.nodes.push_back({str("out", tensor), {tensor}, {}, {{{{0, false}}, {}, 0, PadEffect::zero}}});
  }

  std::mt19937_64 random_;
  RandomProblemOptions options_;
  LayoutProblem problem_;
};

inline LayoutProblem random_problem(uint64_t seed, const RandomProblemOptions& options = {}) {
  return ProblemMaker(seed, options).make();
}

// Tries every implementation of every node with every set of scrubbed tensors and layouts, from the definition of the
// problem alone.
class Enumeration {
 public:
  explicit Enumeration(const LayoutProblem& problem)
      : problem_(problem), impls_(problem.nodes.size()), scrubbed_(problem.tensors.size()) {
    for (size_t t = 0; t < scrubbed_.size(); ++t) scrubbed_[t].resize(problem.costs_of(t).count());
  }
  double least() {
    visit_node(0);
    return least_;
  }

 private:
  void visit_node(size_t n) {
    if (n == impls_.size()) return visit_scrub(0, 0);
    for (impls_[n] = 0; impls_[n] < problem_.nodes[n].implementations.size(); ++impls_[n]) visit_node(n + 1);
  }
  void visit_scrub(size_t t, size_t layout) {
    if (t == scrubbed_.size()) {
      least_ = std::min(least_, cost());
      return;
    }
    if (layout == scrubbed_[t].size()) return visit_scrub(t + 1, 0);
    scrubbed_[t][layout] = false;
    visit_scrub(t, layout + 1);
    // Dirty can be what a node makes, and a copy that has another fill.
    const LayoutCosts::Pad& pad = problem_.costs_of(t).pads[layout];
    if (problem_.tensors[t].free || !pad.there || !is_wanted(t, layout)) return;
    if (made_layout(t) != layout && pad.zero_by_reorder) return;
    scrubbed_[t][layout] = true;
    visit_scrub(t, layout + 1);
  }
  bool is_wanted(size_t tensor, size_t layout) const {
    for (size_t n = 0; n < impls_.size(); ++n) {
      const auto& node = problem_.nodes[n];
      for (size_t i = 0; i < node.operands.size(); ++i) {
        if (node.operands[i] == tensor && node.implementations[impls_[n]].operands[i].layout == layout) return true;
      }
    }
    return false;
  }
  std::optional<size_t> made_layout(size_t tensor) const {
    for (size_t n = 0; n < impls_.size(); ++n) {
      const auto& node = problem_.nodes[n];
      for (size_t i = 0; i < node.results.size(); ++i) {
        if (node.results[i] == tensor) return node.implementations[impls_[n]].results[i];
      }
    }
    return problem_.tensors[tensor].given;
  }

  double cost() const {
    struct Tensor {
      size_t layout = 0;
      bool zero = true;
      std::vector<bool> copies;  // by layout
    };
    std::vector<Tensor> tensors(problem_.tensors.size());
    double sum = 0;
    for (size_t t = 0; t < tensors.size(); ++t) {
      tensors[t].copies.resize(problem_.costs_of(t).count());
      tensors[t].layout = problem_.tensors[t].given.value_or(0);
      tensors[t].zero = problem_.tensors[t].given_zero_pad;
    }
    for (size_t n = 0; n < impls_.size(); ++n) {
      const auto& node = problem_.nodes[n];
      const auto& impl = node.implementations[impls_[n]];
      sum += impl.cost;
      bool zeros = true;
      for (size_t i = 0; i < node.operands.size(); ++i) {
        const size_t t = node.operands[i], layout = impl.operands[i].layout;
        if (problem_.tensors[t].free) continue;
        const LayoutCosts::Pad& pad = problem_.costs_of(t).pads[layout];
        const bool made = tensors[t].layout == layout;
        const bool zero = !pad.there || scrubbed_[t][layout] || (made ? tensors[t].zero : pad.zero_by_reorder);
        if (!made) tensors[t].copies[layout] = true;
        if (impl.operands[i].needs_zero_pad && !zero) return std::numeric_limits<double>::infinity();
        zeros &= zero;
      }
      for (size_t i = 0; i < node.results.size(); ++i) {
        Tensor& made = tensors[node.results[i]];
        made.layout = impl.results[i];
        made.zero = impl.pad == PadEffect::zero || (impl.pad == PadEffect::same && zeros);
      }
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      const LayoutCosts& costs = problem_.costs_of(t);
      for (size_t l = 0; l < costs.count(); ++l) {
        if (tensors[t].copies[l]) sum += costs.reorder(tensors[t].layout, l);
        if (scrubbed_[t][l]) sum += costs.pads[l].scrub;
      }
    }
    return sum;
  }

  const LayoutProblem& problem_;
  std::vector<size_t> impls_;
  std::vector<std::vector<bool>> scrubbed_;  // tensor, layout
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace tenon::testing
