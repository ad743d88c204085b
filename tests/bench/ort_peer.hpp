// ONNX Runtime as a competitor in the same process, through the slots of its C interface (the table only ever grows);
// the library is the one named by ORT_SO. None of its headers are needed.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tenon/tensor/tensor.hpp>

namespace tenon::bench {

class OrtPeer {
 public:
  static bool available() { return api() != nullptr; }

  OrtPeer(const std::string& model_bytes, const std::vector<std::pair<std::string, Tensor>>& inputs,
          const std::vector<std::pair<std::string, Tensor>>& outputs, int threads) {
    static void* const env = [] {
      void* made = nullptr;
      call(kCreateEnv, 3, "tenon", &made);
      return made;
    }();
    void* options = nullptr;
    call(kCreateSessionOptions, &options);
    call(kSetIntraThreads, options, threads);
    call(kSetOptimisation, options, 99);
    call(kCreateSessionFromArray, env, static_cast<const void*>(model_bytes.data()), model_bytes.size(), options,
         &session_);
    call(kCreateCpuMemoryInfo, 1, 0, &memory_);
    for (const auto& [name, tensor] : inputs) bind(name, tensor, input_names_, inputs_);
    for (const auto& [name, tensor] : outputs) bind(name, tensor, output_names_, outputs_);
    names_of(input_names_, input_texts_);
    names_of(output_names_, output_texts_);
  }
  ~OrtPeer() { reinterpret_cast<void (*)(void*)>(api()[kReleaseSession])(session_); }
  OrtPeer(const OrtPeer&) = delete;
  OrtPeer& operator=(const OrtPeer&) = delete;

  // Into the tensors that it was made with.
  void run() {
    call(kRun, session_, static_cast<void*>(nullptr), input_texts_.data(), inputs_.data(), inputs_.size(),
         output_texts_.data(), outputs_.size(), outputs_.data());
  }

 private:
  enum Slot {
    kGetErrorMessage = 2,
    kCreateEnv = 3,
    kCreateSessionFromArray = 8,
    kRun = 9,
    kCreateSessionOptions = 10,
    kSetOptimisation = 23,
    kSetIntraThreads = 24,
    kCreateTensorWithData = 49,
    kCreateCpuMemoryInfo = 69,
    kReleaseSession = 95
  };
  static void** api() {
    static void** const table = []() -> void** {
      const char* path = std::getenv("ORT_SO");
      void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
      if (!library) return nullptr;
      const auto base = reinterpret_cast<void** (*)()>(dlsym(library, "OrtGetApiBase"));
      return base ? reinterpret_cast<void** (*)(uint32_t)>(base()[0])(11) : nullptr;
    }();
    return table;
  }
  template <class... A>
  static void call(Slot slot, A... arguments) {
    void* const status = reinterpret_cast<void* (*)(A...)>(api()[slot])(arguments...);
    if (status) throw std::runtime_error(reinterpret_cast<const char* (*)(void*)>(api()[kGetErrorMessage])(status));
  }
  static int onnx_type(ElementType element) {
    static const std::pair<ElementType, int> kTypes[] = {{kF32, 1}, {kU8, 2},   {kI8, 3},  {kI32, 6},
                                                         {kI64, 7}, {kBool, 9}, {kF16, 10}};
    for (const auto& [known, type] : kTypes)
      if (element == known) return type;
    throw std::runtime_error("the peer has no use for elements of type " + element.to_string());
  }
  void bind(const std::string& name, const Tensor& tensor, std::vector<std::string>& names,
            std::vector<void*>& values) {
    void* value = nullptr;
    call(kCreateTensorWithData, static_cast<const void*>(memory_),
         const_cast<void*>(static_cast<const void*>(tensor.data())), tensor.bytes(), tensor.dims().data(),
         tensor.dims().size(), onnx_type(tensor.element()), &value);
    names.push_back(name);
    values.push_back(value);
  }
  static void names_of(const std::vector<std::string>& names, std::vector<const char*>& texts) {
    for (const std::string& name : names) texts.push_back(name.c_str());
  }

  void* session_ = nullptr;
  void* memory_ = nullptr;
  std::vector<std::string> input_names_, output_names_;
  std::vector<const char*> input_texts_, output_texts_;
  std::vector<void*> inputs_, outputs_;
};

// The same model with an older opset and IR version, in which its operators have the same meaning.
inline std::string with_opset(const std::string& model, int opset, int ir_version) {
  std::string out;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(model.at(at++));
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  };
  while (at < model.size()) {
    const size_t begin = at;
    const uint64_t tag = varint();
    const uint64_t length = varint();  // or the value
    if (tag % 8 == 2) at += length;
    if (tag >> 3 == 1) {
      out += {'\x08', static_cast<char>(ir_version)};
    } else if (tag >> 3 == 8) {
      out += {'\x42', '\x02', '\x10', static_cast<char>(opset)};
    } else {
      out.append(model, begin, at - begin);
    }
  }
  return out;
}

}  // namespace tenon::bench
