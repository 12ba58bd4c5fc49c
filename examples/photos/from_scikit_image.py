"""Renew `originals/` from the photographs that scikit-image ships.

The originals are committed, so nobody needs this to run the example; it is kept so that where
they come from can be checked. Licences: `originals/LICENSE.md`.

    python from_scikit_image.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import skimage.data
from PIL import Image

NAMES = (
    "astronaut",
    "brick",
    "camera",
    "chelsea",
    "coffee",
    "grass",
    "gravel",
    "hubble_deep_field",
    "retina",
    "rocket",
)
LONGEST_SIDE = 900
QUALITY = 88


def photograph(name: str) -> Image.Image:
    """Return one photograph of scikit-image in colour, its longest side at most 900 pixels."""
    image = Image.fromarray(getattr(skimage.data, name)()).convert("RGB")
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    return image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path(__file__).parent / "originals")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        photograph(name).save(arguments.to / f"{name}.jpg", quality=QUALITY, optimize=True)


if __name__ == "__main__":
    main()
