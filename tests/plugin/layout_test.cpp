// The function lists of both sides of the interface are complete and in order.
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include <tenon/passes/pass_manager.hpp>
#include <tenon/passes/rewrite.hpp>
#include <tenon/plugin/layout.hpp>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

// The index of a virtual function in its table. In the Itanium C++ ABI (2.3) a pointer to a virtual member function
// holds 1 plus the offset in bytes; on arm64 the 1 is in the second word and the first one is the offset.
template <class Pointer>
size_t slot_of(Pointer pointer) {
  ptrdiff_t words[2];
  static_assert(sizeof pointer == sizeof words);
  std::memcpy(words, &pointer, sizeof words);
#if defined(__aarch64__)
  return static_cast<size_t>(words[0]) / sizeof(void*);
#else
  return static_cast<size_t>(words[0] - 1) / sizeof(void*);
#endif
}

// A derived class adds its functions after those of its base, so the index of `last` counts the base's functions.
template <class Base>
struct Counted : Base {
  using Base::Base;
  virtual void last() {}
};

TEST(Layout, VirtualFunctionsAreListedInOrderAndNoneIsMissing) {
  std::map<std::string, size_t> listed, counted;
#define COUNT(type, function)                                                                           \
  EXPECT_EQ(slot_of(&type::function), 2 + listed[#type]++) << #type "::" #function " stands elsewhere"; \
  counted[#type] = slot_of(&Counted<type>::last) - 2;
#define COUNT_OVERLOAD(type, function, pointer)                                  \
  EXPECT_EQ(slot_of(static_cast<pointer>(&type::function)), 2 + listed[#type]++) \
      << #type "::" #function " stands elsewhere";                               \
  counted[#type] = slot_of(&Counted<type>::last) - 2;
  TENON_LAYOUT_VIRTUALS(COUNT, COUNT_OVERLOAD)
  EXPECT_EQ(listed, counted);
}

TEST(Layout, LinesAreDistinctAndTheHashDependsOnEach) {
  std::set<std::string> seen;
  for (const tenon_layout_line& line : layout_internal::kLines) {
    EXPECT_EQ(line.struct_size, sizeof line);
    EXPECT_TRUE(seen.insert(line.what).second) << line.what;
  }
  EXPECT_GT(seen.size(), 100u);
  EXPECT_NE(kLayoutHash, 0u);
}

// An older plugin would use another definition of Pass than the core.
TEST(Layout, PassesAreThoseOfTheirRevision) {
  uint64_t fields = fnv1a("passes");
  for (const size_t number : {sizeof(Pass), sizeof(Pass::name), sizeof(Pass::contract), sizeof(Pass::run),
                              sizeof(Pass::needs), sizeof(PassTiming), sizeof(PassReport), sizeof(PassOptions),
                              sizeof(PassManager), sizeof(Match), sizeof(Pattern), sizeof(Rewrite)})
    fields = hash_mix(fields, number);
  constexpr std::pair<uint64_t, uint64_t> kStated{2, 1887887522388262402};
  EXPECT_EQ(std::pair(layout_internal::kPassesRevision, fields), kStated)
      << "if passes or rewrites have other fields, raise kPassesRevision in layout.hpp; then state both here";
}

// Sizes and offsets of what the plain side exchanges are guaranteed: the committed list may only grow at the end of a
// structure.
TEST(Layout, ThePlainSideKeepsItsPromise) {
  std::string now;
#define TYPE(type) now += str(#type " ", sizeof(type), "\n");
#define FIELD(type, field) now += str("  " #field " ", offsetof(type, field), "\n");
  TENON_ABI_STRUCTURES(TYPE, FIELD)
#define SLOT(group, result, name, arguments) now += str("  " #name " ", offsetof(tenon_slots, name), " " #group "\n");
  TENON_PLUGIN_SLOTS(SLOT)
  const std::string path = TENON_SOURCE_DIR "/tests/abi/plain.txt";
  if (std::getenv("TENON_UPDATE_GOLDEN")) std::ofstream(path) << now;
  std::ifstream file(path);
  const std::string committed(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(now, committed) << "the plain side of the seam changed; TENON_UPDATE_GOLDEN=1 rewrites " << path
                            << ", and TENON_ABI_MINOR (added at the end) or TENON_ABI_MAJOR (anything else) must rise";
}

// No structure has fields that the list lacks: the fields extend to the end of the structure, up to its alignment.
TEST(Layout, TheListNamesEveryField) {
  std::map<std::string, size_t> ends, sizes, aligns;
#define TYPE_SIZE(type) sizes[#type] = sizeof(type), aligns[#type] = alignof(type);
#define FIELD_END(type, field) ends[#type] = std::max(ends[#type], offsetof(type, field) + sizeof(type::field));
  TENON_ABI_STRUCTURES(TYPE_SIZE, FIELD_END)
#define SLOT_END(group, result, name, arguments) \
  ends["tenon_slots"] = std::max(ends["tenon_slots"], offsetof(tenon_slots, name) + sizeof(tenon_slots::name));
  TENON_PLUGIN_SLOTS(SLOT_END)
  for (const auto& [type, size] : sizes)
    EXPECT_EQ((ends[type] + aligns[type] - 1) / aligns[type] * aligns[type], size) << type;
}

}  // namespace
}  // namespace tenon
