#include "opencl/stream_fate.hpp"

#include <utility>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

class ClEvent final : public Event {
 public:
  ClEvent(std::shared_ptr<StreamFate> fate, EventObject event) : fate_(std::move(fate)), event_(std::move(event)) {}
  Result<void> wait() override {
    const Api& cl = fate_->device().cl();
    const cl_event event = event_.get();
    const cl_int code = cl.clWaitForEvents(1, &event);
    if (code == CL_SUCCESS) return {};
    const cl_int status = status_of(cl, event);
    const bool told = code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST && status < 0;
    return fate_->ended(failure(told ? status : code, "work of a stream"), true);
  }
  bool done() const override { return status_of(fate_->device().cl(), event_.get()) <= CL_COMPLETE; }

 private:
  const std::shared_ptr<StreamFate> fate_;
  const EventObject event_;
};

class DownloadEvent final : public Event {
 public:
  DownloadEvent(std::shared_ptr<StreamFate> fate, std::shared_ptr<Downloads> all, DownloadPtr download)
      : fate_(std::move(fate)), all_(std::move(all)), download_(std::move(download)) {}
  Result<void> wait() override {
    auto finished = all_->finish(*download_);
    return finished.ok() ? Result<void>() : fate_->ended(std::move(finished).error(), true);
  }
  bool done() const override {
    if (status_of(fate_->device().cl(), download_->event.get()) > CL_COMPLETE) return false;
    static_cast<void>(all_->finish(*download_));  // completion is what counts here; wait() reports errors
    return true;
  }

 private:
  const std::shared_ptr<StreamFate> fate_;
  const std::shared_ptr<Downloads> all_;
  const DownloadPtr download_;
};

}  // namespace

Result<void> StreamFate::usable() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  return {};
}

Result<void> StreamFate::ended(Error error, bool of_device) {
  if (of_device) {
    device_->distrust();
    error = std::move(error).with_frame(str("device '", device_->name(), "'"));
  }
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  return error;
}

EventPtr work_event(std::shared_ptr<StreamFate> fate, EventObject event) {
  return std::make_shared<ClEvent>(std::move(fate), std::move(event));
}

EventPtr download_event(std::shared_ptr<StreamFate> fate, std::shared_ptr<Downloads> all, DownloadPtr download) {
  return std::make_shared<DownloadEvent>(std::move(fate), std::move(all), std::move(download));
}

}  // namespace tenon::opencl
