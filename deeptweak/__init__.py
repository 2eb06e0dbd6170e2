"""DeepTweak from the command line (`deeptweak --help`), and the helper with which a training script tells its steps (`deeptweak.steps`)."""
