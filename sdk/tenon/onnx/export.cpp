#include <tenon/onnx/export.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/onnx/function_table_internal.hpp>
#include <tenon/onnx/model_file_internal.hpp>
#include <tenon/onnx/regions_internal.hpp>
#include <tenon/onnx/tensor_proto_internal.hpp>
#include <tenon/onnx/type_proto_internal.hpp>

namespace tenon {
namespace onnx {
namespace {

using format::AttributeProto;
using format::GraphProto;
using format::NodeProto;

constexpr int64_t kIrVersion = 13;

// ---- Names ----

// Names that are unique in a region and the enclosing ones; sibling regions may use the same names.
class Names {
 public:
  // Enters all values of `region`, and the names of its outputs.
  Result<void> enter(const Region& region) {
    entered_.emplace_back();
    for (size_t i = 0; i < region.input_count(); ++i) {
      TENON_OK(give_exactly(region, *region.input(i), region.input(i)->name(), "input"));
    }
    std::set<std::string_view> outputs;
    for (size_t i = 0; i < region.output_count(); ++i) {
      const std::string& name = region.output_name(i);
      if (!outputs.insert(name).second) return error(Code::invalid_argument, "two outputs are named ", quote(name));
      const Value& value = *region.output(i);
      const bool own = value.region() == &region && !of_.contains(&value);
      if (own && !taken_.contains(name)) of_[&value] = take(name);
    }
    for (const Op& op : region) {
      for (size_t i = 0; i < op.result_count(); ++i) {
        const Value& value = *op.result(i);
        if (!of_.contains(&value)) of_[&value] = unique(value.name().empty() ? "v" : value.name());
      }
    }
    return {};
  }
  void leave() {
    for (const std::string& name : entered_.back()) taken_.erase(name);
    entered_.pop_back();
  }

  std::string of(const Value* value) const { return value ? of_.at(value) : std::string(); }
  std::string unique(const std::string& wanted) {
    if (!taken_.contains(wanted)) return take(wanted);
    for (size_t& i = next_[wanted];;) {
      std::string name = str(wanted, "_", ++i);
      if (!taken_.contains(name)) return take(std::move(name));
    }
  }

 private:
  Result<void> give_exactly(const Region& region, const Value& value, const std::string& name, std::string_view what) {
    const bool free = !name.empty() && !taken_.contains(name);
    if (!free && !region.parent()) return error(Code::invalid_argument, "two ", what, "s are named ", quote(name));
    of_[&value] = free ? take(name) : unique(name.empty() ? "v" : name);
    return {};
  }
  std::string take(std::string name) {
    taken_.insert(name);
    entered_.back().push_back(name);
    return name;
  }

  std::unordered_map<const Value*, std::string> of_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, size_t> next_;
  std::vector<std::vector<std::string>> entered_;  // by region, outermost first
};

// ---- External data ----

class DataFile {
 public:
  // Page-aligned, so that readers can map each tensor.
  static constexpr size_t kAlignment = 4096;

  DataFile(std::string path, size_t threshold) : path_(std::move(path)), threshold_(threshold) {}
  bool takes(const Tensor& tensor) const { return !tensor.element().is_string() && tensor.bytes() >= threshold_; }

  Result<void> add(const Tensor& tensor, format::TensorProto& out) {
    if (!file_.is_open()) file_.open(path_, std::ios::binary | std::ios::trunc);
    const size_t padding = (kAlignment - at_ % kAlignment) % kAlignment;
    file_.write(std::string(padding, '\0').data(), static_cast<std::streamsize>(padding));
    at_ += padding;
    file_.write(reinterpret_cast<const char*>(tensor.data()), static_cast<std::streamsize>(tensor.bytes()));
    if (!file_) return failed();
    out.set_data_location(format::TensorProto::EXTERNAL);
    const auto note = [&](const char* key, std::string value) {
      auto& entry = *out.add_external_data();
      entry.set_key(key);
      entry.set_value(std::move(value));
    };
    note("location", std::filesystem::path(path_).filename().string());
    note("offset", str(at_));
    note("length", str(tensor.bytes()));
    at_ += tensor.bytes();
    return {};
  }
  Result<void> finish() {
    if (file_.is_open() && !file_.flush()) return failed();
    return {};
  }

 private:
  Error failed() const { return error(Code::io, "writing '", path_, "': ", std::strerror(errno)); }
  std::string path_;
  size_t threshold_;
  std::ofstream file_;
  size_t at_ = 0;
};

// ---- The exporter ----

// The only attribute of ONNX that is a whole type; elsewhere element types are numbers.
bool is_whole_type(const Op& op, Name attribute) { return op.is("Optional") && attribute == Name("type"); }

class Exporter {
 public:
  explicit Exporter(DataFile* data) : data_(data) {}

  Result<void> run(const Graph& graph, format::ModelProto& model) {
    model.set_ir_version(kIrVersion);
    TENON_OK(write_region(graph.body(), *model.mutable_graph()), "exporting graph '", graph.name(), "'");
    model.mutable_graph()->set_name(graph.name());
    write_properties(graph, model);
    domains_.insert("");
    for (const std::string& domain : domains_) {
      auto& import = *model.add_opset_import();
      import.set_domain(domain);
      import.set_version(version_of(graph, domain));
    }
    return data_ ? data_->finish() : Result<void>();
  }

 private:
  static int64_t version_of(const Graph& graph, const std::string& domain) {
    if (const auto newest = newest_opset(domain)) return *newest;
    const auto found = graph.properties().find("opset." + domain);
    const int64_t stated = found == graph.properties().end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
    return std::max<int64_t>(stated, 1);
  }

  static void write_properties(const Graph& graph, format::ModelProto& model) {
    constexpr std::string_view kMetadata = "metadata.";
    for (const auto& [key, text] : graph.properties()) {
      if (key == "producer_name") model.set_producer_name(text);
      if (key == "producer_version") model.set_producer_version(text);
      if (key == "domain") model.set_domain(text);
      if (key == "model_version") model.set_model_version(std::strtoll(text.c_str(), nullptr, 10));
      if (key == "doc_string") model.set_doc_string(text);
      if (key == "graph.doc_string") model.mutable_graph()->set_doc_string(text);
      if (key.starts_with(kMetadata)) {
        auto& entry = *model.add_metadata_props();
        entry.set_key(key.substr(kMetadata.size()));
        entry.set_value(text);
      }
    }
    if (model.producer_name().empty()) model.set_producer_name("tenon");
  }

  Result<void> write_region(const Region& region, GraphProto& out) {
    TENON_OK(names_.enter(region));
    for (size_t i = 0; i < region.input_count(); ++i)
      TENON_OK(write_info(*region.input(i), names_.of(region.input(i)), *out.add_input()));
    bool leading = true;
    for (const Op& op : region) {
      const Tensor* constant = constant_of(op.result_count() == 1 ? op.result() : nullptr);
      leading = leading && constant;
      if (leading) {
        TENON_OK(write_data(*constant, names_.of(op.result()), *out.add_initializer()));
      } else {
        TENON_OK(write_op(op, *out.add_node()), op.describe());
        TENON_OK(write_infos(op, region, out), op.describe());
      }
    }
    for (size_t i = 0; i < region.output_count(); ++i) {
      std::string name = names_.of(region.output(i));
      if (name != region.output_name(i)) {
        auto& copy = *out.add_node();
        copy.set_op_type("Identity");
        copy.add_input(name);
        name = names_.unique(region.output_name(i));
        if (!region.parent() && name != region.output_name(i)) {
          return error(Code::invalid_argument, "output ", quote(region.output_name(i)), " has the name of an input");
        }
        copy.add_output(name);
      }
      TENON_OK(write_info(*region.output(i), name, *out.add_output()));
    }
    names_.leave();
    return {};
  }

  static Result<void> write_info(const Value& value, const std::string& name, format::ValueInfoProto& out) {
    out.set_name(name);
    if (!value.type().known()) return {};
    TENON_OK(write_type(value.type(), *out.mutable_type()), "value ", quote(name));
    return {};
  }

  // Writes what is known about inner values; outputs state their own types.
  Result<void> write_infos(const Op& op, const Region& region, GraphProto& out) {
    for (size_t i = 0; i < op.result_count(); ++i) {
      const Value& value = *op.result(i);
      const std::string name = names_.of(&value);
      bool is_output = false;
      for (size_t k = 0; k < region.output_count() && value.is_region_output(); ++k) {
        is_output = is_output || (region.output(k) == &value && region.output_name(k) == name);
      }
      if (value.type().known() && !is_output) TENON_OK(write_info(value, name, *out.add_value_info()));
    }
    return {};
  }

  Result<void> write_op(const Op& op, NodeProto& out) {
    const std::string& name = op.name().str();
    const size_t dot = name.rfind('.');
    if (dot != std::string::npos) out.set_domain(name.substr(0, dot));
    out.set_op_type(dot == std::string::npos ? name : name.substr(dot + 1));
    domains_.insert(out.domain());
    if (!op.label().empty()) out.set_name(op.label());
    for (size_t i = 0; i < op.operand_count(); ++i) out.add_input(names_.of(op.operand(i)));
    for (size_t i = 0; i < op.result_count(); ++i) out.add_output(names_.of(op.result(i)));
    for (const auto& [key, value] : op.attributes())
      TENON_OK(write_attribute(op, key, value, *out.add_attribute()), "attribute '", key, "'");
    return write_regions(op, out);
  }

  Result<void> write_regions(const Op& op, NodeProto& out) {
    const auto names = region_names(op.name());
    for (size_t i = 0; i < op.region_count(); ++i) {
      const Region& region = op.region(i);
      const bool known = names && i < names->size();
      const bool passes = region.empty() && region.input_count() == 1 && region.output_count() == 1 &&
                          region.output(0) == region.input(0);
      if (known && (*names)[i].optional && passes) continue;
      auto& attribute = *out.add_attribute();
      // Import orders the graphs of operators that it does not know by their names.
      attribute.set_name(known ? std::string((*names)[i].attribute) : str("region_", i < 10 ? "0" : "", i));
      attribute.set_type(AttributeProto::GRAPH);
      attribute.mutable_g()->set_name(attribute.name());
      TENON_OK(write_region(region, *attribute.mutable_g()), "region ", i);
    }
    return {};
  }

  Result<void> write_data(const Tensor& tensor, const std::string& name, format::TensorProto& out) {
    if (!data_ || !data_->takes(tensor)) return write_tensor(tensor, name, out);
    TENON_OK(write_tensor_header(tensor, name, out));
    return data_->add(tensor, out);
  }

  Result<void> write_attribute(const Op& op, Name name, const Attribute& value, AttributeProto& out) {
    out.set_name(name.str());
    const auto set = [&](AttributeProto::AttributeType type) { out.set_type(type); };
    if (const auto* v = value.get_if<int64_t>()) {
      set(AttributeProto::INT);
      out.set_i(*v);
    } else if (const auto* v = value.get_if<float>()) {
      set(AttributeProto::FLOAT);
      out.set_f(*v);
    } else if (const auto* v = value.get_if<std::string>()) {
      set(AttributeProto::STRING);
      out.set_s(*v);
    } else if (const auto* v = value.get_if<Tensor>()) {
      set(AttributeProto::TENSOR);
      return write_data(*v, "", *out.mutable_t());
    } else if (const auto* v = value.get_if<Type>()) {
      return write_type_attribute(*v, is_whole_type(op, name), out);
    } else if (const auto* v = value.get_if<Attribute::Integers>()) {
      set(AttributeProto::INTS);
      out.mutable_ints()->Add(v->begin(), v->end());
    } else if (const auto* v = value.get_if<Attribute::Reals>()) {
      set(AttributeProto::FLOATS);
      out.mutable_floats()->Add(v->begin(), v->end());
    } else if (const auto* v = value.get_if<Attribute::Texts>()) {
      set(AttributeProto::STRINGS);
      for (const std::string& text : *v) out.add_strings(text);
    } else if (const auto* v = value.get_if<Attribute::Tensors>()) {
      set(AttributeProto::TENSORS);
      for (const Tensor& tensor : *v) TENON_OK(write_data(tensor, "", *out.add_tensors()));
    }
    return {};
  }

  static Result<void> write_type_attribute(const Type& type, bool whole, AttributeProto& out) {
    if (!whole && type.is_tensor() && !type.shape().ranked()) {
      out.set_type(AttributeProto::INT);
      TENON_TRY(number, number_of_element(type.element()));
      out.set_i(number);
      return {};
    }
    out.set_type(AttributeProto::TYPE_PROTO);
    return write_type(type, *out.mutable_tp());
  }

  DataFile* data_;
  Names names_;
  std::set<std::string> domains_;
};

}  // namespace
}  // namespace onnx

Result<void> export_model(const Graph& graph, const std::string& path, const ExportOptions& options) {
  std::optional<onnx::DataFile> data;
  if (options.external_data_threshold) {
    const std::filesystem::path model_path(path);
    const std::string name =
        options.external_data_file.empty() ? model_path.filename().string() + ".data" : options.external_data_file;
    if (name.find('/') != std::string::npos)
      return error(Code::invalid_argument, "external data file '", name, "' is not beside the model");
    data.emplace((model_path.parent_path() / name).string(), *options.external_data_threshold);
  }
  onnx::format::ModelProto model;
  TENON_OK(onnx::Exporter(data ? &*data : nullptr).run(graph, model), "writing '", path, "'");
  return onnx::write_file(path, model);
}

Result<std::string> export_model_bytes(const Graph& graph) {
  onnx::format::ModelProto model;
  TENON_OK(onnx::Exporter(nullptr).run(graph, model));
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return error(Code::resource_exhausted, "the model exceeds 2 GiB; write it with external data");
  return bytes;
}

}  // namespace tenon
