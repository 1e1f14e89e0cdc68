"""From what a protocol says about reading (`bench.types.Readout`) to fields of an encoder's config."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.core.errors import UsageError
from bench.data.fetching.hub import HubError
from bench.retrieval.backbones import scratch
from bench.retrieval.hub import fetch
from bench.retrieval.model_files import model_json
from bench.types import Readout

_DEPTH = ("num_hidden_layers", "n_layers", "num_layers")  # by which name architectures call it
_FIELDS = ("pooling", "layer", "normalise", "similarity", "title", "lowercase", "question_mark")


def fixed(readout: Readout, backbone: str) -> dict[str, Any]:
    """Return the fields of the encoder config that a protocol fixes.

    Args:
        readout: how the protocol reads texts.
        backbone: what the encoder started from (`scratch:LxH`, a folder, a Hugging Face id); its depth decides the
            layer where the protocol names one by depth.

    Returns:
        Fields of `bench.core.encoder_config.EncoderConfig` by name.

    Raises:
        UsageError: the depth is needed and unknown.
    """
    fields = says(readout)
    if readout.layers:
        depth = depth_of(backbone)
        layer = layer_of(readout.layers, depth)
        fields["layer"] = layer if layer < depth else -1
    return fields


def says(readout: Readout) -> dict[str, Any]:
    """Return the fields of the encoder config that a protocol fixes; of the layer, the rule that it goes by."""
    fields = {name: getattr(readout, name) for name in _FIELDS}
    if readout.lengths:
        fields |= dict(zip(("query_length", "passage_length"), readout.lengths, strict=True))
    if readout.layers:
        fields["layer"] = readout.layers
    return {name: value for name, value in fields.items() if value is not None}


def layer_of(layers: Mapping[int, int], depth: int) -> int:
    """Return the layer that a rule (depth → layer, from 1) reads, of another depth the share of the nearest in it.

    Of two the smaller; at least the first layer: by `{12: 8, 24: 14}`, layer 1 of 2, 3 of 4 and 4 of 6.
    """
    near = min(sorted(layers), key=lambda candidate: abs(candidate - depth))
    return max(1, (2 * layers[near] * depth + near) // (2 * near))  # halves up; whole numbers round alike everywhere


def depth_of(backbone: str) -> int:
    """Return how many layers a backbone has, by its config, fetched or cached. Raises `UsageError` if none says."""
    if sizes := scratch(backbone):
        return sizes.layers
    folder = Path(backbone).expanduser()
    if not folder.is_dir():
        try:
            folder = fetch(backbone, ["config.json"])
        except HubError as error:
            raise UsageError(
                where=f"backbone {backbone!r}",
                found=f"no such folder, and {error.found}",
                expected="the config of an encoder: the protocol's readout goes by the number of layers",
                hint=error.hint,
            ) from error
    path = folder / "config.json"
    config = model_json(path, expected="the config of an encoder")
    depth = next((config[name] for name in _DEPTH if isinstance(config.get(name), int)), None)
    if depth is None:
        raise UsageError(
            f"{path}: found no number of layers, which the protocol's readout goes by, expected {_DEPTH[0]}; "
            "type --set encode.layer=NUMBER, or --readout encoder"
        )
    return int(depth)
