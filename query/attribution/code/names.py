"""Names in stack frames: parses a frame, and maps its class to names in the source.

Everything here is a pure function of names; `query.attribution.code.resolve` looks the results up in indexes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from crystalperf.indexes.names import LONGEST_NAME
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.registry import readable

Nature = Literal["source", "hidden", "generated"]

_FRAME_JAVA = regex(
    r"(?:at\s+)?"
    r"(?:\w*//|[\w-]+(?:\.[\w-]+)+(?:@[^/\s]+)?/|\w+@[^/\s]+/)?"  # loader or module: app//, java.base@17.0.1/
    r"(?P<owner>[^\s():/]+)\.(?P<method>[^\s.():]+)"
    r"(?:\((?P<file>[^():]*)(?::(?P<paren_line>-?\d+))?\)|:(?P<line>-?\d+))?"
)
_FRAME_PYTHON = regex(r"(?P<file>[^:()\"]+\.pyx?|<frozen [\w.]+>):(?P<line>\d+)(?:\s*\((?P<method>[^()]+)\))?")
_FRAME_PYTHON_AFTER = regex(r"(?P<method>[^\s()]+)\s+\((?P<file>[^():]+\.pyx?|<frozen [\w.]+>):(?P<line>\d+)\)")
_FRAME_TRACEBACK = regex(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<method>\S+))?')

_HIDDEN = regex(
    r"\$\$Lambda"  # Flow$$Lambda/0x00007f…, Flow$$Lambda$12/0x…, Flow$$Lambda.0x…
    r"|[/+.]0x[0-9a-f]{6,}"  # any hidden class
    r"|LambdaForm\$|java\.lang\.invoke\.(?:Invokers|DirectMethodHandle|DelegatingMethodHandle)\$Holder"
    r"|(?:^|\.)\$Proxy\d+|\$\$EnhancerBy|\$\$FastClassBy|\$ByteBuddy\$"
)
_GENERATED = regex(
    r"GeneratedClass(?:\$|$)|Generated(?:Method|Constructor|SerializationConstructor)Accessor\d+"
    r"|org\.codehaus\.janino\..*\$Generated"
)
# Some frameworks generate classes without a package: StreamExecCalc$42.
_UNPACKAGED = regex(r"[A-Z]\w*\$\d+")

WAITS_FOR_PEERS = (
    r"^((sun\.nio\.ch\.(Net|IOUtil|NativeDispatcher|(Server)?SocketChannelImpl|SocketDispatcher|NioSocketImpl|Datagram\w*"
    r"|UnixDomainSockets|EPoll\w*|KQueue\w*|PollSelector\w*|SelectorImpl)"
    r"|java\.net\.((Server|Datagram)?Socket|(Abstract)?Plain\w*SocketImpl|Socket(In|Out)putStream)"
    r"|java\.lang\.Process(Handle)?Impl|java\.lang\.ref\.Reference|io\.netty\.channel\.(epoll|kqueue)\.Native)[$.]"
    r"|lib(c|jvm|pthread)\b.*(futex|cond_|Monitor|park|poll|accept|recv|select|sleep))"
)
"""Pattern of class and method where a thread waits for a connection, data, a wake-up, or the end of a child process."""

SOCKET_CALLS = (
    r"^(sun\.nio\.ch\.(Net|(Server)?SocketChannelImpl|SocketDispatcher|NioSocketImpl|Datagram\w*|UnixDomainSockets"
    r"|EPoll\w*|KQueue\w*|PollSelector\w*|SelectorImpl)"
    r"|java\.net\.((Server|Datagram)?Socket|(Abstract)?Plain\w*SocketImpl|Socket(In|Out)putStream|Inet\w*AddressImpl)"
    r"|io\.netty\.channel\.(epoll|kqueue)\.Native)[$.]"
)
FILE_CALLS = (
    r"^(java\.io\.(File(In|Out)putStream|RandomAccessFile|UnixFileSystem|FileDescriptor)"
    r"|sun\.nio\.ch\.(\w*FileChannelImpl|\w*FileDispatcher\w*)|sun\.nio\.fs\.UnixNativeDispatcher)[$.]"
)
"""Pattern of class and method where the JDK calls the kernel.  A thread blocked below such a frame waits for that
device, even if its caller does more: a function that reads and decodes is labelled both."""

CODEC_CALLS = (
    r"^(net\.jpountz\.(lz4|xxhash)|org\.xerial\.snappy|com\.github\.luben\.zstd|io\.airlift\.compress(\.v3)?"
    r"|com\.ning\.compress|org\.tukaani\.xz|org\.anarres\.lzo|org\.brotli|com\.aayushatharva\.brotli4j"
    r"|org\.apache\.hadoop\.(io\.compress\.\w+|util\.(Pure|Native)\w*Crc32\w*)|sun\.security\.provider|com\.sun\.crypto\.provider"
    r"|java\.util\.zip\.(Deflater|Inflater|Adler32|CRC32C?)|java\.security\.MessageDigest|javax\.crypto)[.$]"
    r"|^lib(lz4|snappyjava|zstd|z|crypto)\b"
)
"""Pattern of class and method where a library compresses, encrypts or computes a checksum.  A thread that runs below
such a frame computes, even if its caller reads or writes."""

_SHADED = regex(r"(?:^|\.)(?:shaded|shade|relocated|repackaged|thirdparty)\.(?P<original>.+)")
# Packages that builds relocate under their own: org.apache.hive.com.google.common, shaded.parquet.it.unimi.dsi.
_EMBEDDED = regex(
    r"[.](?P<original>(?:com\.google\.(?:common|protobuf|gson|flatbuffers)|com\.fasterxml\.jackson|it\.unimi\.dsi"
    r"|io\.netty|io\.grpc|net\.jpountz|org\.objectweb\.asm|org\.slf4j|org\.eclipse\.jetty"
    r"|org\.apache\.(?:avro|calcite|commons|http|pekko|thrift|logging))\..+)"
)
_TOP_LEVEL = frozenset(
    [
        "com",
        "org",
        "io",
        "net",
        "javax",
        "jakarta",
        "scala",
        "akka",
        "edu",
        "dev",
        "kotlin",
        "okhttp3",
        "okio",
        "reactor",
    ]
)

_ANONYMOUS = regex(r"\$\$anon\$\d+")


def bounded(name: str) -> str:
    """A name, cut to LONGEST_NAME characters."""
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack.  `class_name` is the path for a Python frame; `line` is None if unknown."""

    class_name: str
    method: str
    line: int | None


def parse_frame(text: str) -> Frame | None:
    """Parse a frame as users paste it; None if the text is not a frame.

    Accepted: `package.Class.method:line`, `at a.B.m(F.scala:12)`, `path.py:12 (f)`, `f (path.py:12)` and Python's
    `File "path.py", line 12, in f`, packages separated by '.' or '/'.
    """
    text = text.strip()
    if len(text) > 4 * LONGEST_NAME:
        return None
    for pattern in (_FRAME_PYTHON, _FRAME_PYTHON_AFTER, _FRAME_TRACEBACK):
        if match := pattern.fullmatch(text):
            return Frame(match["file"].strip(), match["method"] or "", int(match["line"]))
    match = _FRAME_JAVA.fullmatch(text)
    if match is None:
        # The separators of JFR: com/acme/Flow.map:12
        match = _FRAME_JAVA.fullmatch(text.replace("/", "."))
    if match is None:
        return None
    digits = match["paren_line"] or match["line"]
    line = int(digits) if digits and int(digits) > 0 else None
    return Frame(bounded(match["owner"]), bounded(match["method"]), line)


def nature(class_name: str) -> Nature:
    """Whether a class is from source, a hidden class of the JVM (lambda, proxy), or generated at run time."""
    if (
        "$" not in class_name
        and "0x" not in class_name
        and "Generated" not in class_name
        and "Specific" not in class_name
    ):
        return "source"
    if _HIDDEN.search(class_name):
        return "hidden"
    if _GENERATED.search(class_name) or _UNPACKAGED.fullmatch(class_name):
        return "generated"
    if any(pattern.search(class_name) for pattern in _generated()):
        return "generated"
    return "source"


@cache
def _generated() -> tuple[re.Pattern[str], ...]:
    """Patterns of the classes that frameworks generate."""
    patterns = (each.reader.frames.names.generated for each in readable().values())
    return tuple(each for each in patterns if each is not None)


@cache
def _relocations() -> tuple[tuple[str, str], ...]:
    """Prefixes of packages that the frameworks' builds relocate, with the original prefixes."""
    return tuple(each for framework in readable().values() for each in framework.reader.frames.names.relocated)


def original(class_name: str) -> str | None:
    """The name of a relocated ('shaded') class in its own library; None if it was not relocated.

    >>> original("org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf")
    'io.netty.buffer.ByteBuf'
    """
    for relocated, own in _relocations():
        if class_name.startswith(relocated):
            return own + class_name[len(relocated) :]
    if match := _EMBEDDED.search(class_name):
        return match["original"]
    match = _SHADED.search(class_name)
    if match is None:
        return None
    name = match["original"]
    first, _, rest = name.partition(".")
    return name if first in _TOP_LEVEL or "." not in rest else rest


@lru_cache(maxsize=1 << 16)
def declaring_names(class_name: str) -> tuple[str, ...]:
    """Names to look up a frame's class by, best first: itself, its outermost class, both for the original name.

    A Python path is looked up by its endings, longest first.  A class named like a generated one may still have source.
    """
    if is_python(class_name):
        return tuple(_path_endings(class_name))
    names = []
    dotted = class_name.replace("/", ".")
    for name in (dotted, original(dotted)):
        if name is None:
            continue
        names.append(name)
        if nature(name) == "generated":
            continue  # its code is not in the file of its outermost class
        package, _, simple = name.rpartition(".")
        outermost = simple[:1] + simple[1:].partition("$")[0]
        if outermost != simple:
            names.append(f"{package}.{outermost}" if package else outermost)
    return tuple(names)


def is_python(class_name: str) -> bool:
    """Whether a frame's class is the path of a Python file."""
    return class_name.endswith((".py", ".pyx")) or class_name.startswith("<frozen ")


def runtime_class(class_name: str) -> str:
    """A class in the form of `runtime_names`: packages by '.', without the numbers of Scala's anonymous classes."""
    return _ANONYMOUS.sub("$$anon", class_name.replace("/", "."))


def _path_endings(path: str) -> list[str]:
    if path.startswith("<frozen "):
        path = path.removeprefix("<frozen ").removesuffix(">").replace(".", "/") + ".py"
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    endings = ["/".join(parts[start:]) for start in range(max(0, len(parts) - 16), len(parts) - 1)]
    if len(parts) == 1 or (len(parts) > 1 and parts[-2].startswith("python")):
        endings.append(parts[-1])
    return endings
