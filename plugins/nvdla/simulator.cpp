#include "nvdla/simulator.hpp"

#include "nvdla/units.hpp"

namespace tenon::nvdla {

Result<void> Units::step(const Words& words) {
  TENON_TRY(command, decode(words));
  ++counters_.commands;
  switch (command.kind) {
    case Kind::begin: return begin();
    case Kind::load_data: return load_data(command);
    case Kind::load_weights: return load_weights(command);
    case Kind::convolve: return h_.half() ? convolve<float>(command) : convolve<uint32_t>(command);
    case Kind::elementwise: return elementwise(command);
    case Kind::pool: return pool(command);
  }
  return {};
}

Counters Units::counters() const {
  Counters all = counters_;
  all.cycles = clock_.end();
  return all;
}

Simulator::Simulator(const Hardware& hardware) : hardware_(hardware), buffer_(std::make_unique<Buffer>(hardware)) {}
Simulator::~Simulator() = default;

Result<Counters> Simulator::run(std::span<const Words> commands, std::span<std::byte> dram, ParallelFor& parallel) {
  Units units(hardware_, *buffer_, dram, parallel);
  for (size_t i = 0; i < commands.size(); ++i) {
    const uint32_t kind = commands[i][0];
    TENON_OK(units.step(commands[i]), "command ", i,
             kind < kKinds ? str(", ", kind_name(static_cast<Kind>(kind))) : "");
  }
  return units.counters();
}

}  // namespace tenon::nvdla
