"""The command line as text: every verb, argument and option that scripts may rest on."""

from __future__ import annotations

import click

from hotlap.cli import VERBS, hotlap

RENEW = (
    "the command line has changed; if that is meant, renew the snapshot and say it in "
    "CHANGELOG.md: python -m house.surface > house/surface.txt (in tests/)"
)


def surface() -> str:
    """Return the whole command line, one line per verb, argument and option."""
    context = click.Context(hotlap, info_name="hotlap")
    lines = describe(hotlap, "hotlap")
    for name in VERBS:
        command = hotlap.get_command(context, name)
        assert command is not None
        lines += describe(command, f"hotlap {name}")
    return "\n".join(lines) + "\n"


def describe(command: click.Command, path: str) -> list[str]:
    """Return the lines of one command, and of those below it when it is a plain group."""
    lines = [path, *(f"    {_parameter(parameter)}" for parameter in command.params)]
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            lines += describe(inner, f"{path} {name}")
    return lines


def _parameter(parameter: click.Parameter) -> str:
    """Return what one argument or option accepts."""
    names = " ".join([*parameter.opts, *parameter.secondary_opts])
    words = [parameter.param_type_name, names]
    if not getattr(parameter, "is_flag", False):
        words.append(parameter.type.name)
        words += list(getattr(parameter.type, "choices", ()))
    if parameter.required:
        words.append("required")
    if parameter.multiple:
        words.append("multiple")
    if parameter.nargs != 1:
        words.append(f"nargs={parameter.nargs}")
    return " ".join(str(word) for word in words)


if __name__ == "__main__":
    click.echo(surface(), nl=False)
