// The torque of friction_compensation on the side of a controller, which may outlive the estimator.
//
// The class is friction_estimator.SafeCompensation in C++11 without dependencies, and the tests compare both. A message
// counts while it is fresh: its stamp is newer than that of the message before, and within `timeout` of the newest joint
// states that the controller has read. After one that is older, or has the stamp of the message before but other torques
// (two nodes send, or a clock was set back), no message counts for `timeout`. After half of `timeout` without a fresh message the torque falls, and after `timeout` it is zero. Whatever
// arrives, the torque is finite and within `limit`, and its size grows at most with `slew_rate`.
//
// receive() and torque() belong to the same thread. They neither allocate nor throw.

#ifndef FRICTION_ESTIMATOR_SAFE_COMPENSATION_HPP
#define FRICTION_ESTIMATOR_SAFE_COMPENSATION_HPP

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace friction_estimator
{

// Time of a clock that never jumps back [s].
struct SteadyClock
{
  double operator()() const
  {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

template <typename Clock = SteadyClock>
class SafeCompensation
{
public:
  // Number of joints, largest torque of a joint [N m], longest time without a fresh message [s], largest rate of change
  // of the torque [N m/s]; throws std::invalid_argument where one of the last three is not a positive number.
  explicit SafeCompensation(
    std::size_t joints, double limit = 10.0, double timeout = 0.1, double slew_rate = 500.0, Clock clock = Clock())
  : limit_(limit), timeout_(timeout), slew_rate_(slew_rate), clock_(clock), wanted_(joints), torque_(joints), newest_(joints)
  {
    for (double value : {limit, timeout, slew_rate}) {
      if (!(value > 0.0 && std::isfinite(value))) {
        throw std::invalid_argument("SafeCompensation: limit, timeout and slew_rate must be positive numbers");
      }
    }
  }

  // Take the newest message: its efforts in the order of the controller's joints [N m], found by the names in the message,
  // and their number, its header stamp and that of the newest joint states that the controller has read [ns]. True where the message is fresh.
  bool receive(const double * torque, std::size_t size, std::int64_t stamp_ns, std::int64_t newest_joint_stamp_ns)
  {
    advance();
    const std::uint64_t a = static_cast<std::uint64_t>(stamp_ns);
    const std::uint64_t b = static_cast<std::uint64_t>(newest_joint_stamp_ns);
    const std::uint64_t apart = stamp_ns < newest_joint_stamp_ns ? b - a : a - b;
    if (!(static_cast<double>(apart) <= 1e9 * timeout_) || size != wanted_.size()) {
      return false;
    }
    for (std::size_t joint = 0; joint < size; ++joint) {
      if (!std::isfinite(torque[joint])) {
        return false;
      }
    }
    const bool newer = !has_stamp_ || stamp_ns > stamp_ns_;
    const bool repeated = has_stamp_ && stamp_ns == stamp_ns_ && std::equal(newest_.begin(), newest_.end(), torque);
    stamp_ns_ = stamp_ns;
    has_stamp_ = true;
    std::copy(torque, torque + size, newest_.begin());
    if (!newer && !repeated) {
      in_order_ = 0.0;
    }
    if (!newer || in_order_ < timeout_) {
      return false;
    }
    for (std::size_t joint = 0; joint < size; ++joint) {
      wanted_[joint] = bounded(torque[joint], -limit_, limit_);
    }
    age_ = 0.0;
    return true;
  }

  // Torque to add to the motor command of this period, one value a joint [N m].
  const std::vector<double> & torque()
  {
    advance();
    const double part = bounded(2.0 * (1.0 - age_ / timeout_), 0.0, 1.0);
    const double step = slew_rate_ * std::min(pause_, timeout_), bound = part * limit_;
    pause_ = 0.0;
    for (std::size_t joint = 0; joint < torque_.size(); ++joint) {
      const double before = torque_[joint];
      torque_[joint] = bounded(bounded(part * wanted_[joint], before - step, before + step), -bound, bound);
    }
    return torque_;
  }

private:
  static double bounded(double value, double low, double high) { return std::min(std::max(value, low), high); }

  void advance()
  {
    const double now = clock_();
    double elapsed = has_time_ ? now - time_ : 0.0;
    elapsed = std::isnan(elapsed) ? std::numeric_limits<double>::infinity() : std::max(elapsed, 0.0);
    time_ = now;
    has_time_ = true;
    age_ += elapsed;
    in_order_ += elapsed;
    pause_ += elapsed;
  }

  double limit_, timeout_, slew_rate_;
  Clock clock_;
  std::vector<double> wanted_, torque_, newest_;
  std::int64_t stamp_ns_ = 0;
  bool has_stamp_ = false, has_time_ = false;
  double time_ = 0.0, age_ = std::numeric_limits<double>::infinity(), in_order_ = age_, pause_ = 0.0;
};

}  // namespace friction_estimator

#endif  // FRICTION_ESTIMATOR_SAFE_COMPENSATION_HPP
