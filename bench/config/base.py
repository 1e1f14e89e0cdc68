"""The base of every config, and how its fields are declared."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """Base of every config: frozen, strict about types, closed to unknown keys.

    Subclasses declare fields with `setting`, so that each default carries its source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def setting(
    default: Any,
    *,
    source: str,
    help: str | None = None,
    in_key: bool = True,
    file: bool = False,
    late: bool = False,
    log_only: bool = False,
    by_machine: bool = False,
    **limits: Any,
) -> Any:
    """Declare a field of a config.

    Args:
        default: the value where nobody says otherwise.
        source: where the default comes from: paper and section, reference code, or `ours: reason`.
        help: one line: what it does, with its unit; None where the annotation has it (`Annotated[…, Field(…)]`).
        in_key: whether it enters keys; False where it changes no result, only speed or memory.
        late: it came after results were kept, so it enters keys only where it is not its default.
        log_only: it decides what a training logs and no weight, so keys have its default whatever is typed.
        by_machine: it is a precision that may be `auto`: a run puts what suits its machine in the place of that.
        file: it names a file or a folder, whose content enters keys in place of its path; empty or None for none.
        limits: pydantic's constraints: `ge`, `gt`, `le`, `lt`, `min_length`, `max_length`, `pattern`.
    """
    extra: dict[str, Any] = {
        "source": source,
        "not_in_key": not in_key,
        "file": file,
        "late": late,
        "log_only": log_only,
        "by_machine": by_machine,
    }
    if help is not None:
        limits["description"] = help
    return Field(default=default, json_schema_extra=extra, **limits)


def constant(default: Any, *, source: str) -> Any:
    """Declare a field of a config that is no setting: its value is fixed, since nobody varies it.

    No layer sets it, no key and no listing has it; typing it is refused with the value and the source. Python code
    that builds a config, such as a test, may still give another value.

    Args:
        default: the value.
        source: where it comes from, as for `setting`.

    Example:
        class LoopConfig(Config):
            beta1: float = constant(0.9, source="AdamW's usual value")
    """
    return Field(default=default, json_schema_extra={"source": source, "constant": True})


def shared(section: type[Config], key: str) -> Any:
    """Declare a field of a config whose value is a setting of the harness: one for all configs that share it.

    `bench.config.layers.resolve` fills it in. No listing of the config has it, and typing it there is refused with the
    key that it has; in identities it counts as the harness's setting does. Python code that builds a config, such as a
    test, gives it a value, or it has the setting's default.

    Args:
        section: the section of the harness that declares the setting.
        key: of the setting, dotted; its last part is the name in `section`.

    Example:
        class LoopConfig(Config):
            precision: Precision = shared(TrainSection, "train.precision")
    """
    leaf = section.model_fields[key.rpartition(".")[2]]
    declared = leaf.json_schema_extra if isinstance(leaf.json_schema_extra, dict) else {}
    return Field(default=leaf.default, json_schema_extra={**declared, "shared": key})
