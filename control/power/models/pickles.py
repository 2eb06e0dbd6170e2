"""Read foreign pickles (joblib's .pkl, torch's .pth) as data, without imports or calls."""

from __future__ import annotations

import io
import math
import pickle  # its machine alone: every name in a file is replaced
import re
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from control.errors import Unreadable, one_line

if TYPE_CHECKING:
    from control.power.terms import Floats

T = TypeVar("T")
NAMES = {  # package → what may be named of it
    "collections": {"OrderedDict"},
    "numpy": {"_frombuffer", "_reconstruct", "dtype", "ndarray"}
    | {
        "MT19937",
        "SeedSequence",
        "__bit_generator_ctor",
        "__pyx_unpickle_SeedSequence",
        "__randomstate_ctor",
    },
    "joblib": {"NumpyArrayWrapper"},
    "sklearn": {"DecisionTreeRegressor", "DummyRegressor", "GradientBoostingRegressor", "Tree"}
    | {"CyHalfSquaredError", "HalfSquaredError", "IdentityLink", "Interval"},
    "_loss": {"CyHalfSquaredError"},  # scikit-learn's, compiled
    "torch": {"DoubleStorage", "FloatStorage", "_rebuild_tensor_v2"},
}
STORED = {"FloatStorage": "<f4", "DoubleStorage": "<f8"}
NUMBERS = re.compile(r"[biuf][1248]")
MOST_BYTES = 16 * 1024**2  # unpacked; a .pth of a few coefficients has some KB


class Foreign:
    """A pickled object: the name of its class or function, its arguments, state and items."""

    name = ""
    args: tuple[Any, ...]
    state: Any
    items: dict[Any, Any]
    content: Any  # of an array that joblib laid beside the pickle

    def __new__(cls, *args: object) -> Self:
        """Record the arguments without using them."""
        made = object.__new__(cls)
        made.args, made.state, made.items, made.content = args, {}, {}, None
        return made

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        self.items[key] = value


# The Python class, because the C one cannot be told how to read arrays.
class _Reader(pickle._Unpickler):  # noqa: SLF001
    dispatch: ClassVar[dict[int, Callable[..., None]]] = dict(
        pickle._Unpickler.dispatch  # noqa: SLF001
    )

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.file = file

    def find_class(self, module: str, name: str) -> type[Foreign]:
        if name not in NAMES.get(module.partition(".")[0], ()):
            raise Unreadable(
                f"names {one_line(f'{module}.{name}', 80)}, which no parameter file needs; "
                "nothing was run"
            )
        return type(name, (Foreign,), {"name": name})

    def get_extension(self, code: int) -> None:
        raise Unreadable(
            f"requests pickle extension {code}, which no parameter file needs; nothing was run"
        )

    def persistent_load(self, pid: Any) -> tuple[str, str]:
        _, storage, key, *_ = pid
        return storage.name, str(key)

    def _build(self) -> None:
        pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]  # noqa: SLF001
        built = self.stack[-1]  # type: ignore[attr-defined]
        # Joblib writes the array right behind it.
        if isinstance(built, Foreign) and built.name == "NumpyArrayWrapper":
            built.content = _content(built.state, self.file)

    dispatch[pickle.BUILD[0]] = _build


def _content(state: dict[str, Any], file: io.BytesIO) -> bytes | Foreign:
    if state["dtype"].args[0] == "O8":
        nested: Foreign = _Reader(file).load()
        return nested
    if state.get("numpy_array_alignment_bytes") is not None:
        file.read(file.read(1)[0])
    return file.read(math.prod(state["shape"]) * dtype(state["dtype"]).itemsize)


def dtype(foreign: Foreign) -> np.dtype[Any]:
    """Return the dtype of numbers, or of records of numbers. Raises: ValueError, for others."""
    kind, (_, order, _, names, fields, *_) = foreign.args[0], foreign.state
    if names:
        formats, offsets = zip(
            *((dtype(fields[name][0]), fields[name][1]) for name in names), strict=True
        )
        records: np.dtype[Any] = np.dtype(
            {
                "names": list(names),
                "formats": list(formats),
                "offsets": list(offsets),
                "itemsize": int(kind[1:]),
            }
        )
        return records
    if not NUMBERS.fullmatch(kind):
        raise ValueError(f"an array of {one_line(kind, 20)}, not of numbers")
    number: np.dtype[Any] = np.dtype(order.replace("|", "") + kind)
    return number


def array(foreign: Foreign) -> Any:
    """Return an array saved by joblib or numpy; for objects, a list.

    Raises: ValueError, among others.
    """
    if foreign.name == "NumpyArrayWrapper":
        said = foreign.state
        shape, kind, by_columns, content = (
            said["shape"],
            said["dtype"],
            said["order"] == "F",
            foreign.content,
        )
        if isinstance(content, Foreign):
            return array(content)
    elif foreign.name == "_frombuffer":
        content, kind, shape, order = foreign.args
        by_columns = order == "F"
    elif foreign.name == "_reconstruct":
        _, shape, kind, by_columns, content = foreign.state
    else:
        raise ValueError(f"{foreign.name} is not an array")
    if isinstance(content, list):
        return content
    return np.frombuffer(content, dtype(kind)).reshape(shape, order="F" if by_columns else "C")


def load(content: bytes, file: str) -> Foreign:
    """Read a .pkl.

    Raises: Unreadable, with the file, for what is damaged and for what names more than such a file
    needs.
    """
    return guarded(file, lambda: _of_kind(_Reader(io.BytesIO(content)).load()))


def tensors(content: bytes, file: str) -> dict[str, float]:
    """Read the numbers in a .pth by name (tensors with one element). Raises: Unreadable."""
    return guarded(file, lambda: _tensors(content))


def _tensors(raw: bytes) -> dict[str, float]:
    with zipfile.ZipFile(io.BytesIO(raw)) as packed:
        if sum(part.file_size for part in packed.infolist()) > MOST_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_BYTES // 1024**2} MiB")
        (head,) = (name for name in packed.namelist() if name.endswith("/data.pkl"))
        folder = head.removesuffix("data.pkl")
        if (
            f"{folder}byteorder" in packed.namelist()
            and packed.read(f"{folder}byteorder") != b"little"
        ):
            raise ValueError("its numbers are big-endian")
        foreign = _of_kind(_Reader(io.BytesIO(packed.read(head))).load())
        result = {}
        for name, tensor in foreign.items.items():
            if isinstance(tensor, Foreign) and tensor.name == "_rebuild_tensor_v2":
                (kind, key), offset, shape, *_ = tensor.args
                values: Floats = np.frombuffer(packed.read(f"{folder}data/{key}"), STORED[kind])
                if math.prod(shape) != 1:
                    raise ValueError(
                        f"{one_line(name, 40)} is a tensor of {math.prod(shape)} numbers, not of "
                        "one"
                    )
                result[str(name)] = float(values[offset])
        return result


def _of_kind(said: object) -> Foreign:
    if not isinstance(said, Foreign):
        raise TypeError(f"it contains {type(said).__name__}, not a model")
    return said


def guarded(file: str, read: Callable[[], T]) -> T:
    """Return what `read` makes of a file's content.

    Raises: Unreadable, with the file, for what is damaged.
    """
    try:
        return read()
    except Unreadable as error:
        raise error if str(error).startswith(file) else Unreadable(f"{file}: {error}.") from None
    except Exception as error:  # noqa: BLE001  # a pickle is a program
        raise Unreadable(f"{file}: is damaged, or has the wrong name: {one_line(error)}.") from None
