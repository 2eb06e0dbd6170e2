"""What both sides compute alike, and decides while a run goes on: pure functions, no files, no clock, no import of either side."""
