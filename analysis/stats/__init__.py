"""The statistics behind verdicts, plans and descriptions: arrays in, numbers out; nothing here knows a file or a table."""
