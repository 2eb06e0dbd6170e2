"""Evidence over several runs: does a tweak set help in general, on other days and other machines?"""
