// A worker that stays, for one job after another.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

class Worker {
 public:
  Worker() : thread_([this] { serve(); }) { thread_.detach(); }

  // The job before must have ended.
  void begin(std::function<void()> job) {
    const std::lock_guard lock(guard_);
    job_ = std::move(job);
    bell_.notify_all();
  }

  void wait() {
    std::unique_lock lock(guard_);
    bell_.wait(lock, [this] { return !job_; });
  }

 private:
  void serve() {
    std::unique_lock lock(guard_);
    for (;;) {
      bell_.wait(lock, [this] { return bool(job_); });
      lock.unlock();
      job_();
      lock.lock();
      job_ = nullptr;
      bell_.notify_all();
    }
  }

  std::mutex guard_;
  std::condition_variable bell_;
  std::function<void()> job_;
  std::thread thread_;
};
