"""Roles of frames in any JVM: waiting threads, pools and reflection, compression, collections, generated code.

A framework on the JVM adds its own: `annotate = jvm.roles({"task": (r"org\\.acme\\.Runner\\.run$",)})`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks import Role

_PATTERNS: dict[Role, tuple[str, ...]] = {
    "task": (),
    "idle": (r"java\.util\.concurrent\.(ThreadPoolExecutor\.getTask|ForkJoinPool\.awaitWork)$",),
    # Sleeps, and waits for the end of a child process or for an object to become garbage.
    "rest": (
        r"java\.lang\.(Thread\.sleep|(ProcessImpl|UNIXProcess)\.waitFor)",
        r"java\.lang\.ref\.ReferenceQueue\.remove",
    ),
    "wait": (
        r"(jdk\.internal|sun)\.misc\.Unsafe\.park$",
        r"java\.lang\.Object\.wait",
        r"java\.lang\.Thread\.(join|yield|onSpinWait)",
        r"java\.lang\.ref\.ReferenceQueue\.",
        r"java\.util\.concurrent\.(locks\.|[A-Za-z]*(Queue|Deque|Latch|Semaphore|Barrier|Exchanger))",
        r"java\.util\.concurrent\.(FutureTask|CompletableFuture)\.(get|await|join|waiting)",
        r"sun\.nio\.ch\.(EPoll|SelectorImpl)",
        r"io\.netty\.channel\.(epoll\.Native\.epollWait|nio\.NioEventLoop\.select)",
    ),
    "scaffolding": (
        r"java\.util\.concurrent\.(ThreadPoolExecutor|FutureTask|ForkJoin|CompletableFuture|Executors)",
        r"java\.lang\.(Thread|reflect\.Method)\.",
        r"(jdk\.internal|sun)\.reflect\.",
        r"java\.security\.AccessController\.",
    ),
    "compute": (
        r"net\.jpountz\.|org\.xerial\.snappy\.|com\.github\.luben\.zstd\.|com\.ning\.compress\.|io\.airlift\.compress\.",
        r"java\.util\.zip\.(Inflater|Deflater|CRC32|Adler32)\.",
    ),
    "collection": (r"scala\.(collection|runtime)\.", r"java\.util\.(?!zip|concurrent|jar|regex)"),
    "generated": (
        r".*(\$\$Lambda|LambdaForm|Generated(Method|Constructor)Accessor|/0x)",
        r".*\.\$Proxy\d",
    ),
}
"""Patterns that match the start of 'class.method'; the first role that matches is the frame's."""


def roles(own: Mapping[Role, tuple[str, ...]]) -> Callable[[str, str], Role | None]:
    """A function from class and method to the role of a frame: by the JVM's patterns and those of `own`.

    Roles are tried in the order above, then those that only `own` has.
    """
    names = dict.fromkeys([*_PATTERNS, *own])
    patterns = {role: (*own.get(role, ()), *_PATTERNS.get(role, ())) for role in names}
    tried = [(role, regex("|".join(each))) for role, each in patterns.items() if each]

    def role(class_name: str, method: str) -> Role | None:
        name = f"{class_name}.{method}"
        return next((role for role, pattern in tried if pattern.match(name)), None)

    return role
