"""Columns: a table as one list a column; with pandas a data frame."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Sequence


class Columns(Mapping[str, List[Any]]):
    """A table: lists by the name of their column, all as long as the table has rows. Needs no pandas."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns: Dict[str, List[Any]] = {name: list(values) for name, values in columns.items()}

    def __getitem__(self, name: str) -> List[Any]:
        if name not in self._columns:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(self._columns)}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()), []))

    def rows(self) -> Iterator[Dict[str, Any]]:
        """The rows, each as a mapping from column to value."""
        names = list(self._columns)
        for values in zip(*self._columns.values()):
            yield dict(zip(names, values))

    def taken(self, rows: Sequence[int]) -> Columns:
        """Some of the rows, by number."""
        return Columns({name: [values[row] for row in rows] for name, values in self._columns.items()})

    @property
    def frame(self) -> Any:
        """As a pandas.DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "data frames are pandas's, which is not installed: pip install pandas; "
                "what is called columns has the same as plain lists"
            ) from error
        return pandas.DataFrame(self._columns)

    def __repr__(self) -> str:
        return f"Columns({self.height} rows: {', '.join(self._columns)})"


def of_rows(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Columns of rows that need not have the same fields: what a row does not have is None."""
    names: Dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return Columns({name: [row.get(name) for row in rows] for name in names})
