"""`penstock bench FAMILY`: measured comparisons, each beside its peer, with ratios and goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from penstock.interfaces.cli.output import show
from penstock.interfaces.cli.tools import Output, OutputKind, tell, tools_of
from penstock.model.errors import MissingError

COLUMNS = ("name", "unit", "ours", "peer", "peer_name", "ratio", "goal", "met")


def bench(
    ctx: typer.Context,
    family: Annotated[str, typer.Argument(help="A family of benchmarks: spark or decision.")],
    only: Annotated[str | None, typer.Option(help="Run the one of this name.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name those there are, and run none.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter and less exact.")] = False,
    output: Output = OutputKind.TABLE,
) -> None:
    """Run benchmarks, each beside its peer in the same run.

    Families: `spark` holds penstock against plain Spark, `decision` times the decisions alone. Ends with 1 when a goal
    is not met.

    Example: penstock bench spark --only probe --quick
    """
    benches = tools_of(ctx).services.benches(family)
    chosen = [each for each in benches if only in (None, each.name)]
    if not chosen:
        names = ", ".join(each.name for each in benches) or "none"
        raise MissingError(
            f"There is no benchmark {only!r} in {family!r} (there are: {names}); name one of these."
        )
    if list_:
        show([{"name": each.name, "what": each.describe} for each in chosen], output)
        return
    rows: list[Mapping[str, Any]] = []
    for number, each in enumerate(chosen, start=1):
        tell(f"[{number}/{len(chosen)}] {each.name}: {each.describe}")
        rows += each.run(quick, lambda text: tell(f"      {text}"))
    show(rows, output, COLUMNS)
    missed = [str(row.get("name")) for row in rows if row.get("met") is False]
    if missed:
        tell(f"Goals not met: {', '.join(missed)}.")
        raise typer.Exit(1)
