// Stores the results of four rows' reductions with one instruction where they are adjacent in memory.
//
//   %r = RepeatFour %f                             StoreFour f32 [%p], %f
//   %a = SpreadFour %r {at = 0} ... %d {at = 3}
//   Store.one f32 [%p], %a ... Store.one f32 [%p + 12], %d
//
//   %a, %b, %c, %d = FoldRows ...                  %f = FoldFour ...
//   Store.one f32 [%p], %a ...                     StoreFour f32 [%p], %f
#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

constexpr size_t kFour = 4;

class FourStores {
 public:
  explicit FourStores(LinearKernel& kernel) : kernel_(kernel), uses_(kernel), gone_(kernel.body.size(), 0) {}

  void run() {
    for (size_t i = 0; i + kFour <= kernel_.body.size(); ++i)
      if (side_by_side(i)) join(i);
    if (std::ranges::find(gone_, 1) == gone_.end()) return;
    erase_marked(kernel_, gone_);
    drop_unread(kernel_, uses_);
  }

 private:
  ElementType element(RegisterId id) const { return kernel_.registers[static_cast<size_t>(id)].element; }
  RegisterId stored(size_t first, size_t place) const { return kernel_.body[first + place].in[0]; }

  bool side_by_side(size_t first) const {
    const Instruction& one = kernel_.body[first];
    if (one.op != kStore || one.touched != Lanes::one) return false;
    const ElementType lane = element(one.in[0]);
    if (!lane.is_float() || lane != one.memory->element) return false;
    for (size_t place = 0; place < kFour; ++place) {
      const Instruction& other = kernel_.body[first + place];
      const auto bytes = static_cast<int64_t>(place) * (lane.bits() / 8);
      if (other.op != kStore || other.touched != Lanes::one || other.memory->base != one.memory->base ||
          other.memory->index != one.memory->index || other.memory->element != lane ||
          other.memory->displacement_bytes != one.memory->displacement_bytes + bytes || !uses_.is_for_one(other.in[0]))
        return false;
    }
    return true;
  }

  void join(size_t first) {
    Instruction& source = kernel_.body[*uses_.maker(stored(first, 0))];
    RegisterId four = -1;
    if (source.op == kFoldRows) {
      for (size_t place = 0; place < kFour; ++place)
        if (source.out[place] != stored(first, place)) return;
      four = kernel_.add_lanes(element(source.out[0]));
      source.op = "FoldFour";
      source.out = {four};
    } else {
      four = spread_from(first);
      if (four < 0) return;
    }
    Instruction& store = kernel_.body[first];
    store.op = "StoreFour";
    store.in = {four};
    store.touched = Lanes::full;
    for (size_t place = 1; place < kFour; ++place) gone_[first + place] = 1;
  }

  // The register whose lanes 0 to 3 are the stored values; -1: there is none.
  RegisterId spread_from(size_t first) const {
    RegisterId repeated = -1;
    for (size_t place = 0; place < kFour; ++place) {
      const Instruction& one = kernel_.body[*uses_.maker(stored(first, place))];
      if (one.op != kSpreadFour || (place > 0 && one.in[0] != repeated) ||
          *one.attributes.find("at")->get_if<int64_t>() != static_cast<int64_t>(place))
        return -1;
      repeated = one.in[0];
    }
    const auto repeat = uses_.maker(repeated);
    if (!repeat || kernel_.body[*repeat].op != kRepeatFour || !uses_.once(kernel_.body[*repeat].in[0])) return -1;
    return kernel_.body[*repeat].in[0];
  }

  LinearKernel& kernel_;
  const Uses uses_;
  std::vector<char> gone_;
};

}  // namespace

void store_fours(LinearKernel& kernel) {
  const auto is_of_one = [](const Instruction& one) { return one.op == kStore && one.touched == Lanes::one; };
  if (std::ranges::any_of(kernel.body, is_of_one)) FourStores(kernel).run();
}

}  // namespace tenon::x86
