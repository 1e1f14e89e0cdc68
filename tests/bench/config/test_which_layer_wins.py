"""Which layer wins: defaults < profile < preset < TOML file < `--set`, with the expected values worked out by hand.

Within a profile, of one method: the preset that it names < its upper bounds.
"""

from pathlib import Path
from typing import Any

import pytest

from bench.config.base import Config, setting
from bench.config.grids import expand_grid
from bench.config.layers import Resolved, identity, pretrained_as, resolve, resolve_run
from bench.config.profiles import PROFILES, Profile
from bench.core.errors import UsageError
from bench.core.files import sha256_file
from bench.pipeline.settings import RunConfig
from bench.plugins import load
from bench.testing import fields
from bench.types import Method, Preset

OURS: dict[str, Any] = {"source": "ours: a test", "help": "for tests"}
DEFAULTS = {"rate": 0.1, "pairs": 1, "steps": 10, "precision": "float32"}


class LoopConfig(Config):
    """Settings of a training."""

    rate: float = setting(0.1, **OURS)
    pairs: int = setting(1, **OURS)
    steps: int = setting(10, **OURS)
    precision: str = setting("float32", **OURS)


def preset(**values: Any) -> Preset:
    return Preset(values, "a paper, Table 1", "")


PRESETS = {
    "paper": preset(rate=0.2, pairs=512, precision="float16"),
    "Mine": preset(rate=0.3, pairs=2048),
    "table5=large": preset(rate=0.4),
    "table5=huge": preset(pairs=4096),
}
TRAINED = Method(
    "trained", "1", "", "", LoopConfig, encoder_config=lambda _: pytest.fail("built"), trainer="a:B", presets=PRESETS
)
SMALL = Profile(
    "small",
    "official",
    "a-model",
    "cuda",
    1000,
    "a day",
    "",
    "paper",
    values={"search.k": 7},
    most={"pairs": 128},
)


def resolved(method: Method, profile: Profile | None, **layers: Any) -> Resolved[RunConfig]:
    return resolve([method], RunConfig, profile=profile, **layers)[method.name]


@pytest.mark.parametrize(
    ("profile", "name", "expected"),
    [
        # no profile: the preset over the defaults
        (None, None, {}),
        (None, "mine", {"rate": 0.3, "pairs": 2048}),
        # the profile's own preset `paper`, below the profile's bounds (512 becomes 128)
        (SMALL, None, {"rate": 0.2, "pairs": 128, "precision": "float16"}),
        # a preset that is named replaces `paper`, and no bound holds
        (SMALL, "mine", {"rate": 0.3, "pairs": 2048}),
        # the cell of a grid lies over `paper`; its own values are not bounded, those of `paper` still are
        (SMALL, "table5=large", {"rate": 0.4, "pairs": 128, "precision": "float16"}),
        (SMALL, "table5=huge", {"rate": 0.2, "pairs": 4096, "precision": "float16"}),
    ],
)
def test_profile_and_preset(profile: Profile | None, name: str | None, expected: dict[str, Any]) -> None:
    """A preset wins over the profile, whichever of the two sets more keys."""
    result = resolved(TRAINED, profile, preset=name)
    assert result.dump()["method"] == DEFAULTS | expected
    assert set(result.origins) - {"search.k"} == {f"method.{key}" for key in expected}


def test_a_file_wins_over_a_preset_and_what_is_typed_over_both(tmp_path: Path) -> None:
    """Of the method and of the harness; of one key typed twice the last holds; rows name the layer that decided."""
    file = tmp_path / "run.toml"
    file.write_text('search.k = 8\n[method]\nrate = 0.5\nsteps = 50\nprecision = "file"\n')
    sets = ("method.steps=60", "search.k=9", "method.steps=61")
    result = resolved(TRAINED, SMALL, preset="mine", file=file, sets=sets)
    assert result.dump()["method"] == {"rate": 0.5, "pairs": 2048, "steps": 61, "precision": "file"}
    assert result.run.search.k == 9
    assert result.origins == {
        "method.rate": str(file),
        "method.pairs": "preset Mine",
        "method.steps": "--set",
        "method.precision": str(file),
        "search.k": "--set",
    }
    file.write_text("search.k = 8\n")
    for layers, expected in (({}, 7), ({"file": file}, 8), ({"file": file, "sets": ("search.k=9",)}, 9)):
        assert resolved(TRAINED, SMALL, **layers).run.search.k == expected
        assert resolve_run(RunConfig, profile=SMALL, **layers)[0].search.k == expected


def test_cells_of_published_tables_keep_their_values_under_every_profile() -> None:
    """CCP's Table 5 varies the temperature: each cell trains with what the table prints, not with the profile's."""
    ccp = expand_grid(load().method("ccp"))
    cells = {cell.name: cell.values["temperature"] for cell in ccp.presets["table5"].cells}
    assert len(set(cells.values())) > 1
    for profile in PROFILES.values():
        for cell, temperature in cells.items():
            result = resolved(ccp, profile, preset=f"table5={cell}")
            assert result.dump()["method"]["temperature"] == temperature, (profile.name, cell)


def test_the_preset_whose_backbone_and_steps_a_profile_takes() -> None:
    """The one that is named where it says how many steps, else the profile's; no other profile than `paper` does so."""
    long, longer = Preset({}, "", "", steps=10), Preset({}, "", "", steps=20)
    method = Method("m", "1", "", "", LoopConfig, presets={"paper": long, "large": longer, "plain": preset()})
    paper = PROFILES["paper"]
    assert [pretrained_as(method, paper, name) for name in (None, "large", "plain", "absent")] == [
        long,
        longer,
        long,
        long,
    ]
    assert pretrained_as(method, PROFILES["small"], "large") is None


class KeyConfig(Config):
    """One field of every kind that decides what enters keys."""

    plain: int = setting(1, **OURS)
    batch: int = setting(2, in_key=False, **OURS)
    late: int = setting(3, late=True, **OURS)
    words: str = setting("", file=True, **OURS)


def test_what_of_a_config_enters_keys(tmp_path: Path) -> None:
    """No field outside the key; a late one where it is not its default; files and folders by content, not by path."""
    assert identity(KeyConfig()) == identity(KeyConfig(batch=9)) == {"plain": 1, "words": ""}
    assert identity(KeyConfig(late=4)) == {"plain": 1, "late": 4, "words": ""}
    file = tmp_path / "one" / "words.txt"
    file.parent.mkdir()
    file.write_text("a\n")
    digest = {"sha256": sha256_file(file)}
    assert identity(KeyConfig(words=str(file)))["words"] == digest
    (tmp_path / "one" / "b").mkdir()
    (tmp_path / "one" / "b" / "c").write_text("")
    folder = identity(KeyConfig(words=str(file.parent)))["words"]
    empty = {"sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
    assert folder == {"files": {"words.txt": digest, "b/c": empty}}
    file.write_text("ab\n")  # the same path holds something else now
    assert identity(KeyConfig(words=str(file)))["words"] == {"sha256": sha256_file(file)} != digest
    with pytest.raises(UsageError, check=fields(where="setting words", expected="a readable file")):
        identity(KeyConfig(words=str(tmp_path / "absent")))
