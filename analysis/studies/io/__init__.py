"""What a training's input did: accelerator utilisation, throughput, and whether the figures may be believed."""
