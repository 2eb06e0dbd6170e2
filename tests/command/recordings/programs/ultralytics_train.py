"""Train a YOLO on random images (ultralytics 8.4.190): `python ultralytics_train.py SLEEP_S`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from clock import Clock
from PIL import Image

SLEEP_S = float(sys.argv[1])
IMAGES, EPOCHS = 40, 2
clock = Clock(SLEEP_S, warmup=2)
generator = np.random.default_rng(1)
with tempfile.TemporaryDirectory(prefix="yolo-") as name:
    folder = Path(name)
    os.environ["YOLO_CONFIG_DIR"] = name
    for part, count in (("train", IMAGES), ("val", 8)):
        (folder / part / "images").mkdir(parents=True)
        (folder / part / "labels").mkdir()
        for number in range(count):
            pixels = generator.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / part / "images" / f"{number}.png")
            label = folder / part / "labels" / f"{number}.txt"
            label.write_text("0 0.5 0.5 0.4 0.4\n", encoding="utf-8")
    data = folder / "data.yaml"
    data.write_text(
        f"path: {folder}\ntrain: train/images\nval: val/images\nnames: [thing]\n", encoding="utf-8"
    )
    from ultralytics import YOLO

    model = YOLO("yolo11n.yaml")
    model.add_callback("on_train_batch_start", lambda _: clock.sleep())
    model.add_callback("on_train_batch_end", lambda _: clock.step())
    model.add_callback("on_train_epoch_start", lambda _: clock.pause())
    model.train(
        data=str(data),
        epochs=EPOCHS,
        imgsz=64,
        batch=2,
        workers=0,
        amp=False,
        device="cpu",
        plots=False,
        project=str(folder / "runs"),
        name="toy",
    )
clock.tell()
