"""How often each decision rule is wrong, and how often it sees what is there: `python -m analysis calibrate`."""
