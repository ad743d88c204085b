// What four rows that go at once fold into, stored side by side: at once.
//
//   %r = RepeatFour %f                             StoreFour f32 [%p], %f
//   %a = SpreadFour %r {at = 0} ... %d {at = 3}
//   Store.one f32 [%p], %a ... Store.one f32 [%p + 12], %d
//
//   %a, %b, %c, %d = FoldRows ...                  %f = FoldFour ...
//   Store.one f32 [%p], %a ...                     StoreFour f32 [%p], %f
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

constexpr size_t kFour = 4;
const Name kStore("Store"), kSpread("SpreadFour"), kRepeat("RepeatFour"), kFoldRows("FoldRows");

class FourStores {
 public:
  explicit FourStores(LinearKernel& kernel)
      : kernel_(kernel),
        writes_(kernel.registers.size()),
        reads_(kernel.registers.size()),
        maker_(kernel.registers.size(), 0),
        gone_(kernel.body.size(), 0) {
    for (size_t i = 0; i < kernel.body.size(); ++i) {
      for (const RegisterId id : kernel.body[i].in) ++reads_[index(id)];
      for (const RegisterId id : kernel.body[i].out) ++writes_[index(id)], maker_[index(id)] = i;
    }
  }

  void run() {
    for (size_t i = 0; i + kFour <= kernel_.body.size(); ++i)
      if (side_by_side(i)) join(i);
    size_t i = 0;
    std::erase_if(kernel_.body, [&](const Instruction&) { return gone_[i++] != 0; });
  }

 private:
  static size_t index(RegisterId id) { return static_cast<size_t>(id); }
  Instruction& maker(RegisterId id) { return kernel_.body[maker_[index(id)]]; }
  RegisterId stored(size_t first, size_t place) const { return kernel_.body[first + place].in[0]; }

  bool side_by_side(size_t first) const {
    const Instruction& one = kernel_.body[first];
    if (one.op != kStore || one.touched != Lanes::one) return false;
    const ElementType lane = kernel_.registers[index(one.in[0])].element;
    if (!lane.is_float() || lane != one.memory->element) return false;
    for (size_t place = 0; place < kFour; ++place) {
      const Instruction& other = kernel_.body[first + place];
      const auto bytes = static_cast<int64_t>(place) * (lane.bits() / 8);
      if (other.op != kStore || other.touched != Lanes::one || other.memory->base != one.memory->base ||
          other.memory->index != one.memory->index || other.memory->element != lane ||
          other.memory->displacement_bytes != one.memory->displacement_bytes + bytes ||
          writes_[index(other.in[0])] != 1 || reads_[index(other.in[0])] != 1)
        return false;
    }
    return true;
  }

  void join(size_t first) {
    Instruction& source = maker(stored(first, 0));
    RegisterId four = -1;
    if (source.op == kFoldRows) {
      for (size_t place = 0; place < kFour; ++place)
        if (source.out[place] != stored(first, place)) return;
      four = kernel_.add_lanes(kernel_.registers[index(source.out[0])].element);
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

  // The register of which lanes 0 to 3 are what is stored, without what spread them; -1: there is none.
  RegisterId spread_from(size_t first) {
    const RegisterId repeated = maker(stored(first, 0)).in.empty() ? -1 : maker(stored(first, 0)).in[0];
    for (size_t place = 0; place < kFour; ++place) {
      const Instruction& one = maker(stored(first, place));
      if (one.op != kSpread || one.in[0] != repeated ||
          *one.attributes.find("at")->get_if<int64_t>() != static_cast<int64_t>(place))
        return -1;
    }
    const Instruction& repeat = maker(repeated);
    if (writes_[index(repeated)] != 1 || repeat.op != kRepeat || writes_[index(repeat.in[0])] != 1) return -1;
    for (size_t place = 0; place < kFour; ++place) gone_[maker_[index(stored(first, place))]] = 1;
    if ((reads_[index(repeated)] -= kFour) == 0) gone_[maker_[index(repeated)]] = 1;
    return repeat.in[0];
  }

  LinearKernel& kernel_;
  std::vector<int> writes_, reads_;
  std::vector<size_t> maker_;  // of each register: the instruction that writes it last
  std::vector<char> gone_;
};

}  // namespace

void store_fours(LinearKernel& kernel) { FourStores(kernel).run(); }

}  // namespace tenon::x86
