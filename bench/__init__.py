"""Speed as ratios: two things measured in turn, in one run, on one machine."""
