"""Robots drawn at random, which walk in two simulators that share no friction code: the judge of the observer."""
