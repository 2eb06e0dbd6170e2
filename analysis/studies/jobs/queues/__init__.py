"""Jobs that wait for slots: what arrives and how long it takes, what the formulas make of it, and whether a run agrees with them."""
