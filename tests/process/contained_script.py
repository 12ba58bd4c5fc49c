"""Does to the folders around it what trainings do: append, overwrite, delete, rename, resume."""

import json
import os
import shutil
import sys
from pathlib import Path

home = Path.home()
out = Path("out")
seen = {"resumed_from": (out / "last.txt").read_text(), "cwd": os.getcwd(), "uid": os.getuid()}
with (out / "log.txt").open("a") as log:
    log.write("another line\n")
(out / "last.txt").write_text("step 2")
shutil.rmtree(out / "old")
(out / "new").mkdir()
(out / "new" / "weights.bin").write_bytes(b"w" * 5000)
os.replace(out / "new" / "weights.bin", out / "best.bin")
(out / "gone.txt").unlink()
os.chmod(out / "kept.txt", 0o600)
(home / "cache.txt").write_text("cached")
Path(sys.argv[1]).write_text("in the temporary folder")
(Path(sys.argv[2]) / "seen.json").write_text(json.dumps(seen))
seen["left"] = sorted(path.name for path in out.iterdir())
print("done", json.dumps(seen["left"]))
