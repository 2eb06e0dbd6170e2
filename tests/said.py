"""The words of a workload, for scripts in its place: processes of this machine, or pods."""

# What a well-behaved workload of one warm-up and two measured steps says; scripts leave it
# somewhere.
SPEAK = """
import json, os, resource, signal, subprocess, sys, time
def say(**event): print(json.dumps(event), flush=True)
def ready(**facts): say(event="ready", facts=facts)
def step(index, **other):
    say(**{**dict(event="step", index=index, start_monotonic_s=1.5, wall_s=0.25, cpu_s=0.5,
                  samples=4, tokens=64, loss=2.0, warmup=index < 1), **other})
def end(): say(event="end")
def all_steps():
    for index in range(3): step(index)
    end()
"""
