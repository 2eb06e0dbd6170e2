"""One file per format of saved runs; each returns a `Run` or refuses the file in one line."""
