"""Cut the photographs in `originals/` into a folder of JPEGs, one sub-folder per photograph.

    python make_photos.py --to photos

Every crop shows a random part of its photograph at 500 x 375 pixels, a usual size in image data
sets. The same seed cuts the same crops. Crops for training and for validation overlap: the set is
there to give a training something real to read and decode, not to compare accuracies.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 500, 375
QUALITY = 90


def cut(photo: Image.Image, dice: random.Random) -> Image.Image:
    """Return a random 4:3 part of `photo`, scaled to 500 x 375, mirrored half of the time."""
    widest = min(photo.width, photo.height * WIDTH // HEIGHT)
    width = dice.randint(widest // 2, widest)
    height = width * HEIGHT // WIDTH
    left = dice.randint(0, photo.width - width)
    top = dice.randint(0, photo.height - height)
    box = (left, top, left + width, top + height)
    crop = photo.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC, box=box)
    if dice.random() < 0.5:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return crop


def make(to: Path, originals: Path, train: int, val: int, seed: int) -> int:
    """Write `train` + `val` crops of every original below `to`; return how many were written."""
    written = 0
    for original in sorted(originals.glob("*.jpg")):
        dice = random.Random(f"{seed} {original.stem}")
        with Image.open(original) as opened:
            photo = opened.convert("RGB")
        for part, count in (("train", train), ("val", val)):
            folder = to / part / original.stem
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                cut(photo, dice).save(folder / f"{number:04d}.jpg", quality=QUALITY)
                written += 1
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path("photos"))
    parser.add_argument("--originals", type=Path, default=Path(__file__).parent / "originals")
    parser.add_argument("--train", type=int, default=64, help="crops per photograph for training")
    parser.add_argument("--val", type=int, default=12, help="crops per photograph for validation")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    written = make(
        arguments.to, arguments.originals, arguments.train, arguments.val, arguments.seed
    )
    print(f"{written} photographs in {arguments.to}")


if __name__ == "__main__":
    main()
