// Kernels for tests of programs, over i32 elements of any rank up to 4, and arguments for them.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/text.hpp>

namespace tenon::program::testing {

using Index = std::array<int64_t, 4>;

// Calls visit(index) for each index of the box.
template <class Visit>
void for_each(const BufferView& view, const Visit& visit) {
  Index index{};
  const auto rank = view.dims.size();
  const std::function<void(size_t)> nest = [&](size_t left) {
    if (left == 0) return visit(std::span<const int64_t>(index.data(), rank));
    const DimView& d = view.dims[left - 1];
    for (index[left - 1] = d.min; index[left - 1] <= d.max(); ++index[left - 1]) nest(left - 1);
  };
  nest(rank);
}

inline int32_t& at(const BufferView& view, std::span<const int64_t> index) {
  return *reinterpret_cast<int32_t*>(view.address(index));
}

// out(i) = f(in(i)...)
inline KernelHandle pointwise(std::string name, std::function<int32_t(std::vector<int32_t>)> f) {
  return make_kernel(
      std::move(name),
      [f](CallContext& c) -> Result<void> {
        for_each(c.operands.back(), [&](std::span<const int64_t> index) {
          std::vector<int32_t> values;
          for (size_t i = 0; i + 1 < c.operands.size(); ++i) values.push_back(at(c.operands[i], index));
          at(c.operands.back(), index) = f(values);
        });
        return {};
      },
      true);
}

// out(i) = sum of in over the indices from i - 1 to i + 1 along each dim.
inline KernelHandle box_sum(std::string name, int64_t radius = 1) {
  return make_kernel(
      std::move(name),
      [radius](CallContext& c) -> Result<void> {
        for_each(c.operands[1], [&](std::span<const int64_t> index) {
          std::vector<DimView> around;
          for (const int64_t i : index) around.push_back({i - radius, 2 * radius + 1, 0, 0});
          int32_t sum = 0;
          for_each({nullptr, around, kI32}, [&](std::span<const int64_t> near) { sum += at(c.operands[0], near); });
          at(c.operands[1], index) = sum;
        });
        return {};
      },
      true);
}

inline KernelTable kernels() {
  KernelTable table;
  const auto add = [&](KernelHandle k) { table.emplace(k->name, k); };
  add(pointwise("add1", [](const auto& v) { return v[0] + 1; }));
  add(pointwise("twice", [](const auto& v) { return 2 * v[0]; }));
  add(pointwise("add", [](const auto& v) { return v[0] + v[1]; }));
  add(box_sum("sum3"));
  // out(i) = scalar 0 + 10 * i_0 + 1000 * i_1
  add(make_kernel("iota", [](CallContext& c) -> Result<void> {
    for_each(c.operands[0], [&](std::span<const int64_t> index) {
      int64_t value = c.scalars[0], weight = 10;
      for (const int64_t i : index) value += i * std::exchange(weight, weight * 100);
      at(c.operands[0], index) = static_cast<int32_t>(value);
    });
    return {};
  }));
  add(make_kernel("fails", [](CallContext&) -> Result<void> { return error(Code::internal, "it failed"); }));
  return table;
}

// Dense i32 buffers by name, which own their elements.
class Data {
 public:
  void add(const std::string& name, std::vector<int64_t> extents, std::vector<int64_t> mins = {}) {
    int64_t count = 1;
    for (const int64_t e : extents) count *= e;
    auto& values = values_[name];
    values.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * i % 97 + 3 * i);
    arguments_.buffers[name] = BufferArgument::dense(values.data(), kI32, extents, mins);
  }
  void scalar(const std::string& name, int64_t value) { arguments_.scalars[name] = value; }
  const std::vector<int32_t>& operator[](const std::string& name) const { return values_.at(name); }
  std::vector<int32_t>& operator[](const std::string& name) { return values_.at(name); }
  Arguments& arguments() { return arguments_; }
  BufferView view(const std::string& name) const {
    const BufferArgument& a = arguments_.buffers.at(name);
    return {a.data, a.dims, kI32};
  }

 private:
  std::map<std::string, std::vector<int32_t>> values_;
  Arguments arguments_;
};

inline Program parsed(std::string_view text) {
  auto program = parse_program(text, kernels());
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return program.ok() ? *std::move(program) : Program{};
}

}  // namespace tenon::program::testing
