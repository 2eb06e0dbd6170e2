"""Read side: load saved runs and judge them.

This package changes no machine and imports nothing from the run side.
"""
