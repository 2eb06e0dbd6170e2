"""Models of what a network gives and draws on a device, and the forms that they are read from. Nothing here opens a file."""
