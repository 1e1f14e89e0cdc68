"""What every plugin promises before it does any work: a light import and clear settings."""

import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from bench.config.fields import LayerValue, build, flat, leaves_of
from bench.config.layers import dump
from bench.config.profiles import profile
from bench.core.children import run_python
from bench.core.errors import ConfigError
from bench.core.messages import shown
from bench.pipeline.compute import fastest
from bench.pipeline.settings import Settings, decided, resolve
from bench.studies.conformance.kit import BrokenPromiseError, expect, promise
from bench.types import Method

HEAVY = ("torch", "transformers", "tensorflow", "jax", "faiss", "pandas", "datasets", "sentence_transformers")
"""Libraries that take seconds to import, so a plugin must not bring them before it works."""

_LIGHT = """
import json, sys
from bench.plugins import load
plugins = load()
import importlib
importlib.import_module({module!r})
print(json.dumps([name for name in {heavy!r} if name in sys.modules]))
"""
_NONSENSE: tuple[Any, ...] = ("no such value", -1e300, {"no": "such value"})


@dataclass
class MethodSubject:
    """A method on trial: the plugin's, the module where it lives, an empty folder, and `KEY=VALUE` settings."""

    method: Method
    module: str
    folder: Path
    sets: tuple[str, ...] = ()

    @cached_property
    def resolved(self) -> Settings:
        """Its settings; raises as `bench.config.layers.resolve` does."""
        settings = resolve([self.method], profile=profile("mini"), sets=self.sets)[self.method.name]
        return decided(settings, partial(fastest, "cpu"))

    @property
    def config(self) -> Any:
        """Its own config."""
        return self.resolved.method


@promise(
    "light-import",
    "importing it brings no torch and nothing else that takes seconds",
    "import heavy libraries inside the functions that need them, or in a module that these import",
)
def light_import(subject: Any) -> None:
    """Import the plugin in a fresh interpreter and look what came along."""
    code = _LIGHT.format(module=subject.module, heavy=HEAVY)
    process = run_python("-c", code, timeout=120)
    expect(
        process.returncode == 0,
        f"importing {subject.module} failed: {(process.stderr.strip() or '?').splitlines()[-1]}",
    )
    brought = json.loads(process.stdout.splitlines()[-1])
    expect(not brought, f"importing the plugins brings {', '.join(brought)}")


@promise(
    "config-round-trip",
    "its settings can be written as JSON and read again, and every preset too",
    "use plain types (numbers, text, tuples, literals), and validators that take their own results",
)
def round_trip(subject: MethodSubject) -> None:
    """Write the settings as JSON and read them again, the defaults and every preset."""
    kind = subject.method.config
    for name, values in {"the defaults": {}, **{k: p.values for k, p in subject.method.presets.items()}}.items():
        config, faults = build(kind, [LayerValue(*pair, name) for pair in flat(values)])
        expect(not faults, f"{name}: {'; '.join(faults)}")
        written = json.loads(json.dumps(dump(config)))
        reread, faults = build(kind, [LayerValue(*pair, "JSON") for pair in flat(written)])
        expect(not faults, f"{name} cannot be read again: {'; '.join(faults)}")
        expect(reread == config, f"{name} come back changed")


@promise(
    "unknown-key-refused",
    "a setting that does not exist is refused by name",
    "derive the config from bench.Config, and leave its model_config alone",
)
def unknown_key(subject: MethodSubject) -> None:
    """Set what is no setting."""
    try:
        resolve([subject.method], sets=["method.no_such_setting=1"])
    except ConfigError as error:
        expect("method.no_such_setting" in str(error), f"the error does not name the key: {error}")
    else:
        raise BrokenPromiseError("method.no_such_setting=1 was taken, expected a ConfigError")


@promise(
    "bad-value-named",
    "a value that a setting cannot take is refused with setting, value and what is allowed",
    "declare every field with a type and limits; a validator's ValueError says what is expected",
)
def bad_values(subject: MethodSubject) -> None:
    """Give every setting values that it cannot take; one of them at least must be refused, in full."""
    for key in leaves_of(subject.method.config):
        refused = False
        for value in _NONSENSE:
            _, faults = build(subject.method.config, [LayerValue(f"method.{key}", value, "the kit")], "method.")
            message, refused = "; ".join(faults), refused or bool(faults)
            parts = {"the setting": f"method.{key}", "the value": shown(value), "what is allowed": "expected"}
            for aspect, part in parts.items() if faults else ():
                expect(part in message, f"method.{key}={shown(value)} is refused without naming {aspect}: {message}")
        expect(refused, f"method.{key} takes anything, expected limits or a type")


CHECKS = (light_import, round_trip, unknown_key, bad_values)
