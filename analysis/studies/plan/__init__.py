"""From a pilot to a plan: blocks, time, length of a cell, and when to look."""
