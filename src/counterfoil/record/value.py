"""``Value``: the base of the frozen values of the record and the reader.

To a type checker it is ``typing.NamedTuple``. At run time it makes the same tuples with named
members, without importing ``typing`` and without the code that a named tuple generates for each
class: together they would cost more than starting Python, and `counterfoil verify` is started once
a case.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Value
else:
    try:
        from _collections import _tuplegetter as _member
    except ImportError:  # a Python without that accelerator
        from operator import itemgetter

        def _member(index, doc):
            return property(itemgetter(index), doc=doc)

    class _ValueType(type):
        """Turns the annotated members of a class body into named places of a tuple."""

        def __new__(cls, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            if fields:
                namespace["_defaults"] = {f: namespace[f] for f in fields if f in namespace}
                namespace["_fields"] = namespace["__match_args__"] = fields
                for index, field in enumerate(fields):
                    namespace[field] = _member(index, None)
            return super().__new__(cls, name, bases, {"__slots__": (), **namespace})

    class Value(tuple, metaclass=_ValueType):
        """Subclass it with annotated members; those with a default come last."""

        __slots__ = ()
        _fields = ()
        _defaults = {}  # noqa: RUF012

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                values = cls._filled(values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _filled(cls, values, named):
            if len(values) > len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} members")
            given = dict(zip(cls._fields, values))  # noqa: B905 - fewer values than fields
            for name, value in named.items():
                if name in given or name not in cls._fields:
                    raise TypeError(f"{cls.__name__} has no place for another {name!r}")
                given[name] = value
            given = {**cls._defaults, **given}
            missing = [field for field in cls._fields if field not in given]
            if missing:
                raise TypeError(f"{cls.__name__} needs {', '.join(missing)}")
            return [given[field] for field in cls._fields]

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changed):
            return type(self)(**{**self._asdict(), **changed})

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            members = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({members})"


__all__ = ["Value"]
