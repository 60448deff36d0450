// Reads the events of test_safe_compensation.py from stdin and writes one line for each: the torques, or 0 or 1.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "friction_estimator/safe_compensation.hpp"

struct GivenClock
{
  double * now;
  double operator()() const { return *now; }
};

int main()
{
  double now = 0.0;
  std::string word;
  auto number = [&word]() { std::cin >> word; return std::strtod(word.c_str(), nullptr); };
  auto stamp = [&word]() { std::cin >> word; return std::strtoll(word.c_str(), nullptr, 10); };
  const std::size_t joints = static_cast<std::size_t>(number());
  const double limit = number(), timeout = number(), slew_rate = number();
  friction_estimator::SafeCompensation<GivenClock> safe(joints, limit, timeout, slew_rate, GivenClock{&now});
  while (std::cin >> word) {
    const bool received = word == "receive";
    now = number();
    if (!received) {
      for (double value : safe.torque()) { std::printf("%a ", value); }
      std::printf("\n");
      continue;
    }
    const std::int64_t own = stamp(), newest = stamp();
    std::vector<double> torque(static_cast<std::size_t>(number()));
    for (double & value : torque) { value = number(); }
    std::printf("%d\n", safe.receive(torque.data(), torque.size(), own, newest));
  }
}
