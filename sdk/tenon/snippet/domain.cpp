#include <tenon/snippet/domain.hpp>

#include <algorithm>

namespace tenon::snippet {
namespace {

// The product of all dims but the last `inside`.
int64_t outside(const Dims& dims, size_t inside) {
  int64_t product = 1;
  for (size_t d = 0; d + inside < dims.size(); ++d) product *= dims[d];
  return product;
}

// The last two dims become one, and a dim of extent 1 comes in front.
void join_last(Dims& dims) {
  const int64_t last = dims.back();
  dims.pop_back();
  dims.back() *= last;
  dims.insert(dims.begin(), 1);
}

// As many dims as `space`, ones in front.
Result<Dims> aligned(const Dims& input, const Dims& space) {
  TENON_TRY(wide, broadcast(input, space));
  if (wide != space)
    return error(Code::invalid_argument, "an input of ", Shape(input), " in a space of ", Shape(space));
  Dims out(space.size() - input.size(), 1);
  out.insert(out.end(), input.begin(), input.end());
  return out;
}

// Are the last two dims one run of memory, or read again and again?
bool contiguous(const Dims& input, const Dims& space) {
  const size_t last = space.size() - 1;
  const bool whole = input[last] == space[last] && input[last - 1] == space[last - 1];
  const bool one = input[last] == 1 && input[last - 1] == 1;
  return whole || one;
}

}  // namespace

Result<Domain> collapse_domain(std::span<const Dims> inputs, int64_t min_kernel, int64_t threads) {
  Domain domain;
  for (const Dims& input : inputs) {
    TENON_TRY(wide, broadcast(domain.dims, input));
    domain.dims = std::move(wide);
  }
  Dims& dims = domain.dims;
  if (dims.size() < 2) return domain;
  std::vector<Dims> ports;
  for (const Dims& input : inputs) {
    TENON_TRY(port, aligned(input, dims));
    ports.push_back(std::move(port));
  }
  const auto joinable = [&] {
    return std::all_of(ports.begin(), ports.end(), [&](const Dims& port) { return contiguous(port, dims); });
  };
  for (size_t joins = 1; joins < dims.size(); ++joins) {
    if (dims.back() >= min_kernel || outside(dims, 2) < threads || !joinable()) break;
    join_last(dims);
    for (Dims& port : ports) join_last(port);
  }
  if (dims[dims.size() - 2] > 1 && outside(dims, 2) >= threads) domain.inside = 2;
  return domain;
}

RowSplit split_rows(int64_t batch, int64_t rows, int64_t threads) {
  RowSplit best{1, rows};
  if (batch < 1 || batch >= threads) return best;
  // Work of the busiest thread against that of an even share: tasks / (rounds * threads), as a fraction.
  const auto tasks_of = [&](int64_t outer) { return batch * outer; };
  const auto slots_of = [&](int64_t outer) { return (tasks_of(outer) + threads - 1) / threads * threads; };
  const auto better = [&](int64_t a, int64_t b) {
    const int64_t left = tasks_of(a) * slots_of(b), right = tasks_of(b) * slots_of(a);
    if (left != right) return left > right;
    return tasks_of(a) >= threads && tasks_of(b) < threads;
  };
  // Evener still would not pay for the tasks, and the products above stay within 64 bits.
  const int64_t most = std::min(rows / kMinRows, 16 * threads);
  for (int64_t outer = 2; outer <= most; ++outer) {
    if (rows % outer == 0 && better(outer, best.outer)) best = {outer, rows / outer};
  }
  return best;
}

}  // namespace tenon::snippet
