// The kernels below a reorder, for each instruction set that this machine supports.
#include <tenon/tensor/reorder_tiles_internal.hpp>

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include <support/guard_pages.hpp>
#include <tenon/support/str.hpp>

namespace tenon::detail {
namespace {

struct Shape {
  int64_t rows, columns, source_gap, destination_gap, zero_rows;
};

// Checks every byte of the destination: elements, zero rows, and those that must not change.
void expect_transpose(const Shape& shape, int64_t size, ReorderIsa isa, std::mt19937_64& random) {
  const int64_t source_pitch = (shape.columns + shape.source_gap) * size,
                destination_pitch = (shape.rows + shape.zero_rows + shape.destination_gap) * size;
  // Exactly as long as the matrices, so that a sanitizer sees what goes beyond.
  std::vector<std::byte> source(static_cast<size_t>((shape.rows - 1) * source_pitch + shape.columns * size)),
      destination(static_cast<size_t>((shape.columns - 1) * destination_pitch + (shape.rows + shape.zero_rows) * size),
                  std::byte{0x5a});
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  std::vector<std::byte> expected = destination;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t c = 0; c < shape.columns; ++c) {
    for (int64_t r = 0; r < shape.rows + shape.zero_rows; ++r) {
      for (int64_t b = 0; b < size; ++b) {
        expected[at(c * destination_pitch + r * size + b)] =
            r < shape.rows ? source[at(r * source_pitch + c * size + b)] : std::byte{0};
      }
    }
  }
  transpose({.source = source.data(),
             .destination = destination.data(),
             .rows = shape.rows,
             .columns = shape.columns,
             .source_pitch = source_pitch,
             .destination_pitch = destination_pitch,
             .zero_rows = shape.zero_rows},
            size, isa);
  ASSERT_EQ(destination, expected) << shape.rows << "x" << shape.columns << " of " << size << " bytes, gaps "
                                   << shape.source_gap << " and " << shape.destination_gap << ", zero rows "
                                   << shape.zero_rows << ", isa " << static_cast<int>(isa);
}

class ReorderTiles : public ::testing::TestWithParam<int64_t> {};

TEST_P(ReorderTiles, EverySizeOnEveryInstructionSet) {
  std::mt19937_64 random(7);
  for (const ReorderIsa isa : reorder_isas()) {
    for (const int64_t few : {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 33, 64, 67}) {
      for (const int64_t many : {1, 2, 3, 15, 16, 31, 47, 64, 65, 130, 200}) {
        for (const int64_t gap : {0, 1, 16}) {
          expect_transpose({few, many, gap, 0, 0}, GetParam(), isa, random);
          expect_transpose({many, few, gap, 0, 0}, GetParam(), isa, random);
          expect_transpose({few, many, 0, gap, 0}, GetParam(), isa, random);
          expect_transpose({many, few, 0, gap, 0}, GetParam(), isa, random);
          expect_transpose({few, many, 0, gap, 16 - few % 16}, GetParam(), isa, random);
          expect_transpose({few, many, gap, 0, 1}, GetParam(), isa, random);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Several contiguous matrices between inaccessible pages: overlapping tiles stay within.
void expect_matrices(const TransposeTask& shape, int64_t size, ReorderIsa isa, std::mt19937_64& random) {
  TransposeTask task = shape;
  const int64_t all_rows = task.rows + task.zero_rows;
  task.source_pitch = task.columns * size;
  task.destination_pitch = all_rows * size;
  task.source_step = task.rows * task.source_pitch;
  task.destination_step = task.columns * task.destination_pitch;
  const test::GuardedBuffer source(static_cast<size_t>(task.count * task.source_step)),
      destination(static_cast<size_t>(task.count * task.destination_step));
  for (size_t i = 0; i < source.bytes(); ++i) source.data()[i] = static_cast<std::byte>(random());
  task.source = source.data();
  task.destination = destination.data();
  task.non_temporal = random() % 2 == 0;
  transpose(task, size, isa);
  for (int64_t i = 0; i < task.count * task.destination_step; ++i) {
    const int64_t byte = i % size, row = i / size % all_rows, column = i / task.destination_pitch % task.columns,
                  from = i / task.destination_step * task.source_step + row * task.source_pitch + column * size + byte;
    ASSERT_EQ(destination.data()[i], row < task.rows ? source.data()[from] : std::byte{0})
        << task.rows << "x" << task.columns << " of " << size << " bytes, zero rows " << task.zero_rows << ", isa "
        << static_cast<int>(isa) << ": matrix " << i / task.destination_step << ", column " << column << ", row "
        << row;
  }
}

TEST_P(ReorderTiles, ManyMatricesWithinTheirMemory) {
  std::mt19937_64 random(11);
  for (const ReorderIsa isa : reorder_isas()) {
    for (const int64_t line : {2, 4, 8, 16, 32, 64}) {
      for (const int64_t lines : {1, 4, 5, 8, 9, 15, 16, 17, 18, 31, 33, 49, 63, 64, 65, 68, 97, 196}) {
        for (const int64_t count : {1, 3}) {
          const auto expect = [&](const TransposeTask& shape) { expect_matrices(shape, GetParam(), isa, random); };
          expect({.source = {},
                  .destination = {},
                  .rows = line,
                  .columns = lines,
                  .source_pitch = 0,
                  .destination_pitch = 0,
                  .count = count});
          expect({.source = {},
                  .destination = {},
                  .rows = lines,
                  .columns = line,
                  .source_pitch = 0,
                  .destination_pitch = 0,
                  .count = count});
          expect({.source = {},
                  .destination = {},
                  .rows = 1 + line / 5,
                  .columns = lines,
                  .source_pitch = 0,
                  .destination_pitch = 0,
                  .zero_rows = line - 1 - line / 5,
                  .count = count});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ReorderTiles, RowsFromTheLastToTheFirst) {
  for (const ReorderIsa isa : reorder_isas()) {
    for (const int64_t columns : {3, 16, 40}) {
      const int64_t size = GetParam(), rows = 20, pitch = columns * size;
      std::vector<std::byte> source(static_cast<size_t>(rows * pitch)), destination(source.size());
      for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7);
      transpose({.source = source.data() + (rows - 1) * pitch,
                 .destination = destination.data(),
                 .rows = rows,
                 .columns = columns,
                 .source_pitch = -pitch,
                 .destination_pitch = rows * size},
                size, isa);
      for (int64_t i = 0; i < rows * columns * size; ++i) {
        const int64_t byte = i % size, row = i / size % rows, column = i / size / rows;
        ASSERT_EQ(destination[static_cast<size_t>(i)],
                  source[static_cast<size_t>((rows - 1 - row) * pitch + column * size + byte)])
            << "row " << row << ", column " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ElementBytes, ReorderTiles, ::testing::Values(1, 2, 4, 8),
                         [](const auto& info) { return str(info.param, "_bytes"); });

}  // namespace
}  // namespace tenon::detail
