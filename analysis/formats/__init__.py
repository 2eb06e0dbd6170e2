"""One file per format of saved runs; each answers a `Run`, or refuses the file in one line."""
