"""Sample the functions to label: python -m crystalperf.indexer.labels.sample DIR OUT [--draw 1|2] [--seed N].

Hints (words in code, names and paths) stratify the sample, so that it has enough functions of rare classes; labels come
from annotators only.  The command writes candidates.tsv (locations) and batches/ (texts for annotators) to OUT.

Draw 1 is the training set of low-level libraries and the development sets.  Draw 2 adds functions of distributed
systems (`draw = 2` in libraries.toml) to the training set, except for texts that are already labelled or measured.
indexer.labels.hard makes draw 3, of functions that are hard for the model.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crystalperf.indexer.labels.functions import HEAD_BYTES, Located, functions_of, is_handwritten
from crystalperf.indexer.labels.libraries import Library, libraries, source_files
from crystalperf.indexer.labels.reserve import FRAMEWORKS, is_reserved
from crystalperf.indexer.labels.tables import SETS, Measured, committed, read_labels, read_table
from crystalperf.indexes.errors import CrystalPerfError

TRAINING_SIZES = {"scala": 1200, "java": 2400, "python": 1320, "cpp": 480}
"""Number of training functions to label, by language of the library; multiples of BATCH_SIZE."""

SECOND_SIZES = {"torch": 300, "python-training": 900, "python": 1020, "scala": 600, "java": 2280, "cpp": 300}
"""Number of functions in the second draw, by part (a library's `part`, else its language), in order of the batches."""

DEVELOPMENT_SIZE = 180
TRAINING_SHARES = {"disk2": 0.26, "disk1": 0.12, "net2": 0.25, "net1": 0.12, "other": 0.25}
SECOND_SHARES = {"disk2": 0.21, "disk1": 0.12, "net2": 0.24, "net1": 0.13, "other": 0.30}
"""More cpu than in the first draw: most functions of a distributed system only mention files and peers."""

DEVELOPMENT_SHARES = {"disk2": 0.26, "disk1": 0.09, "net2": 0.26, "net1": 0.09}
"""Shares drawn from the hinted strata; the rest is drawn uniformly from all functions."""

BATCH_SIZE = 60
DOUBLE_BATCHES = {"scala": 6, "java": 11, "python": 6, "cpp": 3}
"""Number of training batches with two annotators, by language."""

SECOND_PREFIX = "u"
"""Prefix of the ids of the second draw; the first has `t`."""

COLUMNS = (
    *("id", "set", "batch", "library", "version", "file", "first_line", "last_line", "qualified_name"),
    *("text_hash", "stratum", "weight"),
)
"""Of candidates.tsv."""

SHOWN_DOC_CHARS = 600
SHOWN_CODE_CHARS = 2500

_FILES_PER_LIBRARY = 500
_FILES_PER_LIBRARY_OF = {"java": 250}
"""Maximum files of a library in the second draw, by part, so that it can be repeated in minutes."""

_OF_FRAMEWORKS = re.compile(
    rb"^\s*(?:import|from)\s+(?:tensorflow|keras|pyspark|pyflink|delta)\b|org\.apache\.(?:spark|flink)\b|\btf\.compat\b",
    re.MULTILINE,
)
"""Files that use the frameworks of the development sets: excluded from the second draw."""

_FEW_HINTS = 2
_MANY_HINTS = 4
_PER_FILE = 6
_PER_CLASS = 5
_TRIVIAL_SHARE = 0.08  # relative sampling weight of functions of one or two plain lines
_HUGE_SHARE = 0.1
_HUGE_LINES = 120

_DISK_CODE = re.compile(
    r"new (?:java\.io\.)?(?:FileInputStream|FileOutputStream|FileReader|FileWriter|RandomAccessFile|ZipFile|JarFile)|"
    r"\b(?:FileChannel\.open|J?Files\.\w+\(|FileUtils?\.\w+\(|IOUtils\.copy|Utils\.deleteRecursively|file_io\.\w+\(|"
    r"gfile\.\w+|shutil\.\w+|tempfile\.\w+|mmap\.|os\.(?:open|read|write|stat|lstat|listdir|scandir|remove|unlink|rename|"
    r"replace|mkdir|makedirs|rmdir|walk|fsync|chmod|utime|symlink|link|path\.(?:exists|isfile|isdir|getsize|getmtime))\b|"
    r"f(?:open|read|write|sync|seek|truncate|stat|datasync)\(|(?:pread|pwrite|mmap|unlink|open)\(|(?:fs|fileSystem|dfs|"
    r"filesystem|fileContext|fc|env_?|dir|directory)(?:\.|->)\w+\(|(?:db|rocksDB|diskManager|diskStore|blockManager|"
    r"fileManager|fm)(?:\.|->)\w+\()|(?:\.|->)(?:mkdirs?|listFiles|createNewFile|renameTo|lastModified|isDirectory|fsync|"
    r"listStatus|getFileStatus|globStatus|hflush|hsync|createTempFile|createDirector(?:y|ies)|seek|transferTo|force|"
    r"truncate|unlink|rmdir|iterdir|touch|read_text|write_text|read_bytes|write_bytes|Append|Sync|Fsync|NewWritableFile|"
    r"NewSequentialFile|NewRandomAccessFile|GetChildren|DeleteFile|RenameFile|FileExists|deleteRecursively|"
    r"saveAsTextFile|saveAsObjectFile)\(|\b(?:torch|np|numpy|joblib|safetensors|h5py)\.(?:save|load|File)\w*\("
)
_DISK_STREAM = re.compile(
    r"(?:\.|->)(?:read\w*|write\w*|flush|skip\w*|copy\w*|delete\w*|exists|open\w*|create\w*|save\w*|load\w*|spill\w*|"
    r"restore\w*|persist\w*|Read\w*|Write\w*|Flush|Open\w*|Put|Get|Delete|Next|list\w*)\("
)
_DISK_NAME = re.compile(
    r"^(?:read|write|open|load|save|delete|remove|rename|move|copy|flush|sync|list|create|make|mk|spill|snapshot|restore|"
    r"persist|store|dump|append|truncate|seek|extract|unzip|zip|tar|walk|visit|clean|commit|recover|replay|do|exists|"
    r"is_?(?:file|dir)|get(?:File|Dir|Size|Length)|_?(?:read|write|open|load|save)|(?:Read|Write|Open|Sync|Flush|New\w*File|"
    r"Append|Delete))",
)
_DISK_PATH = re.compile(
    r"/(?:file|files|fs|store|storage|disk|archivers|shuffle|snapshot|filesystem|env|table|db|local|file_merging|wal|"
    r"sort|spilling|lib/io|checkpoint|saved_model|persistence|sstable|streaming/state|hybrid|changelog)/|util/collection/External|"
    r"(?:File|Files|Directory|Store|Zip|Tar|Disk|Snapshot|Checkpoint|Spill\w*|Shuffle\w*Writer|file|_io|/io|files|RocksDB|"
    r"storage|saver|archive|FileSystem|Log|Journal|Segment|tarfile|shutil|zipfile|pathlib|mailbox|gzip|os|dbm/\w+)\w*\.\w+$"
)
_NET_CODE = re.compile(
    r"\b(?:new (?:Server|Datagram|Multicast)?Socket\(|socket\.(?:socket|create_connection|getaddrinfo|gethostby\w+)|"
    r"InetAddress\.get\w+|writeAndFlush|openConnection\(|openStream\(|urlopen\(|HTTPS?Connection|getaddrinfo\(|"
    r"gethostbyname|ctx\.(?:write|flush|connect|bind|close|read|channel)\(|ask(?:Sync)?\(|askWithRetry|"
    r"invokeRpc|channelRead0?|fetchBlocks|uploadBlock|sendRpc\w*|sendMessage|transportClient|clientFactory\.createClient|"
    r"(?:endpoint|endpointRef|driver\w*|master\w*|rpcEnv|stub|namenode|proxy|zk|zooKeeper|client|httpClient|http|conn|"
    r"connection|session|sock|socket|_sock|channel|chan|transport|producer|consumer|networkClient|gateway|\w+Gateway|"
    r"peer|bootstrap|pipeline|selector|server|kubernetesClient|admin\w*|remote\w*)(?:\.|->)(?:\w*[sS]end\w*|recv\w*|receive\w*|"
    r"write\w*|read\w*|connect\w*|accept|bind|listen|execute\w*|request\w*|call\w*|invoke\w*|get\w*|post\w*|put|poll|ask\w*|"
    r"create\w*|delete\w*|fetch\w*|submit\w*|select\w*|flush|start\w*|shutdown\w*|finish\w*|close|stop|open\w*|register\w*|"
    r"push\w*|update\w*)\(|grpc\.\w+|requests\.\w+|coordination\w*|connect_to_\w+|collective_\w+|all_reduce\w*|all_gather\w*|"
    r"(?:dist|c10d|xm|comm|process_group|pg|ray)\.(?!get_(?:rank|world_size|backend)|is_)\w+\(|"
    r"broadcast_(?:send|recv)\w*|start_server|server_lib|wait_at_barrier|sess(?:ion)?\.run|_?request_compute_metadata|grpc_\w*(?:read|write|connect|send|recv)\w*\(|"
    r"Curl_\w*(?:send|recv|conn|read|write)\w*\(|(?:send|recv|sendto|recvfrom|connect|accept|bind|listen|poll)\()|"
    r"\.(?:sendall|sendto|recv|recv_into|recvfrom|sendmsg|getresponse|connect|accept|voidcmd|sendcmd|putcmd|execute_request)\("
)
_NET_STREAM = re.compile(
    r"(?:\.|->)(?:read\w*|write\w*|flush|send\w*|request\w*|execute\w*|fetch\w*|connect\w*|close|handle\w*|receive\w*|"
    r"Read\w*|Write\w*|Send\w*|Recv\w*|Connect\w*|Start\w*|call\w*|invoke\w*|respond\w*|notify\w*|all_reduce|reduce\w*|"
    r"broadcast\w*|gather\w*)\("
)
_NET_NAME = re.compile(
    r"^_?(?:send|recv|receive|connect|accept|bind|listen|fetch|poll|request|ask|call|invoke|execute|submit|handshake|resolve|"
    r"lookup|open|write|read|flush|push|upload|download|get|post|put|register|heartbeat|reconnect|start|channel|broadcast|"
    r"transmit|process|do|respond|reply|handle|dispatch|stop|shutdown|close|all_?reduce|reduce|gather|initialize|Curl_|"
    r"\w+_(?:send|recv|connect|read|write)|(?:Send|Recv|Read|Write|Connect|Start)|\w*(?:Request|Connection|Remote|Socket|"
    r"Server|Client|Async))"
)
_NET_PATH = re.compile(
    r"/(?:net|network|http|http2|https|socket|rpc|ipc|transport|client|clients|server|channel|quic|resolver|dns|ch|netty|ws|"
    r"zookeeper|remote|distribute|iomgr|vtls|vauth|protocol|quorum|blob|rest|deploy|kafka\w*|k8s|connect|service|"
    r"tpu|data_service|dtensor)/|^(?:paramiko|aiohttp|requests|urllib3|s3fs)/|"
    r"(?:Socket|Http|Rpc|Client|Server|Channel|Connection|Transport|Fetch\w*|Endpoint|Remote\w*|Gateway|Broadcast|socket|"
    r"ssl|ftplib|smtplib|imaplib|poplib|nntplib|telnetlib|client|server|asyncio/\w+|xmlrpc/\w+|urllib/\w+|http\w*|ftp|"
    r"cluster_resolver\w*|Kerberos|Netty\w*)\w*\.\w+$"
)
_GETTER = re.compile(r"^(?:get|set|is|has|with|to|as)[A-Z_]|^(?:equals|hashCode|toString|__\w+__|size|length)$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function to label; `weight` restores the natural mix of a development set (mean 1)."""

    id: str
    set: str
    batch: str
    located: Located
    stratum: str
    weight: float


def stratum(located: Located) -> str:
    """The stratum: `disk2` or `net2` if many words hint at it, `disk1` or `net1` if few do, else `other`.

    It decides which functions are sampled, never how they are labelled.
    """
    device, count = hints(located)
    return "other" if count < _FEW_HINTS else device + ("2" if count >= _MANY_HINTS else "1")


def hints(located: Located) -> tuple[str, int]:
    """The device with more hints in the words of a function, and the strength of the hints (0 to 7)."""
    function = located.function
    body = function.code[len(function.signature) :] if len(function.code) > len(function.signature) else function.code
    disk = _hints(body, function.name, located.file, _DISK_CODE, _DISK_STREAM, _DISK_NAME, _DISK_PATH)
    net = _hints(body, function.name, located.file, _NET_CODE, _NET_STREAM, _NET_NAME, _NET_PATH)
    return ("disk", disk) if disk >= net else ("net", net)


def _hints(
    body: str,
    name: str,
    file: str,
    operation: re.Pattern[str],
    stream: re.Pattern[str],
    verb: re.Pattern[str],
    place: re.Pattern[str],
) -> int:
    """The hints at one device: its calls, stream calls in a file or class named after it, verbs, the file name."""
    is_there = bool(place.search(f"/{file}"))
    operations = min(2, len(set(operation.findall(body))))
    streams = is_there * min(1, len(set(stream.findall(body))))
    return 2 * operations + streams + bool(verb.search(name)) + is_there


def choose(
    pool: Sequence[Located], size: int, rng: random.Random, shares: Mapping[str, float] = TRAINING_SHARES
) -> list[tuple[Located, str]]:
    """A training sample with these shares of strata, spread over libraries, files and classes."""
    strata = [(located, stratum(located)) for located in _distinct(pool)]
    chosen: list[tuple[Located, str]] = []
    missing = 0  # if a stratum is too small, the rest is drawn from the next, with weaker hints at the same device
    for name, share in shares.items():
        members = [located for located, its in strata if its == name]
        per_library = Counter(located.library for located in members)
        keyed = sorted(
            members,
            # The weight of a library is the square root of its size, so that large ones do not dominate.
            key=lambda located: rng.random() ** (per_library[located.library] ** 0.5 / _worth(located)),
            reverse=True,
        )
        quota = size - len(chosen) if name == "other" else round(size * share) + missing
        picked = capped(keyed, quota)
        missing = quota - len(picked) if name.endswith("2") else 0
        chosen += [(located, name) for located in picked]
    return chosen


def choose_development(pool: Sequence[Located], size: int, rng: random.Random) -> list[tuple[Located, str, float]]:
    """A development sample: enriched strata and a uniform draw, with weights back to the pool's natural mix.

    All functions of a stratum have the same probability in both parts of the sample.  So a function's weight is the
    stratum's size in the pool over its size in the sample, scaled to a mean of 1.
    """
    strata = {position: stratum(located) for position, located in enumerate(pool)}
    drawn: dict[int, None] = {}
    missing = 0
    for name, share in DEVELOPMENT_SHARES.items():
        members = [position for position, its in strata.items() if its == name]
        quota = round(size * share) + missing
        picked = rng.sample(members, min(len(members), quota))
        # Keep the share of a device: if its stronger stratum is too small, draw from its weaker one.
        missing = quota - len(picked) if name.endswith("2") else 0
        drawn.update(dict.fromkeys(picked))
    everything = rng.sample(sorted(strata), len(strata))
    drawn.update(dict.fromkeys([position for position in everything if position not in drawn][: size - len(drawn)]))
    in_pool, in_sample = Counter(strata.values()), Counter(strata[position] for position in drawn)
    scale = len(drawn) / sum(in_pool[name] for name in in_sample)
    return [
        (pool[position], strata[position], scale * in_pool[strata[position]] / in_sample[strata[position]])
        for position in drawn
    ]


def show(identifier: str, located: Located) -> str:
    """A function as text for an annotator: a heading, documentation, code; long texts are cut with a mark."""
    function = located.function
    lines = f"{located.file}:{function.first_line}-{function.last_line}"
    parts = [f"### {identifier} {located.library} {lines} {function.qualified_name}"]
    code = function.code
    if function.doc:
        parts.append(_cut(function.doc, SHOWN_DOC_CHARS))
        parts.append("---")
        if located.file.endswith(".py"):
            code = re.sub(r"[rRuU]?(\"\"\"|''')[\s\S]*?\1\n*", "", code, count=1)
    parts.append(_cut(code, SHOWN_CODE_CHARS))
    return "\n".join(parts) + "\n"


def training_pools(folder: Path) -> dict[str, list[Located]]:
    """Every function of the first draw's training libraries, by the library's language."""
    pools: dict[str, list[Located]] = defaultdict(list)
    for library in libraries():
        if library.set == "train" and library.draw == 1 and library.name not in FRAMEWORKS:
            pools[library.language] += functions_of(library, folder)
    return pools


def development_pool(library: Library, folder: Path) -> list[Located]:
    """Every distinct function of a framework outside of reserved files."""
    return _distinct([located for located in functions_of(library, folder) if not is_reserved(located.file)])


def sample(folder: Path, seed: int) -> list[Candidate]:
    """The candidates of all sets, batch by batch; the same for the same sources, parser and seed."""
    chosen: list[Candidate] = []
    rng = random.Random(seed)
    batches: list[list[tuple[Located, str]]] = []
    for language, pool in sorted(training_pools(folder).items()):
        picked = choose(pool, TRAINING_SIZES[language], rng)
        rng.shuffle(picked)
        batches += [picked[start : start + BATCH_SIZE] for start in range(0, len(picked), BATCH_SIZE)]
    rng.shuffle(batches)
    for number, batch in enumerate(batches):
        for located, its_stratum in batch:
            chosen.append(Candidate(f"t{len(chosen):04d}", "train", f"train-{number:03d}", located, its_stratum, 1.0))
    for library in libraries():
        if library.name in FRAMEWORKS:
            drawn = choose_development(development_pool(library, folder), DEVELOPMENT_SIZE, rng)
            rng.shuffle(drawn)
            parts = -(-len(drawn) // BATCH_SIZE)
            for position, (located, its_stratum, weight) in enumerate(drawn):
                identifier = f"{library.name[0]}{position:04d}" if library.name != "tensorflow" else f"x{position:04d}"
                batch_name = f"{library.set}-{position * parts // len(drawn):03d}"
                chosen.append(Candidate(identifier, library.set, batch_name, located, its_stratum, weight))
    return chosen


def second_pool(part: str, folder: Path) -> list[Located]:
    """The functions of one part's libraries in the second draw, from a limited number of files each."""
    pool: list[Located] = []
    limit = _FILES_PER_LIBRARY_OF.get(part, _FILES_PER_LIBRARY)
    for library in libraries():
        if library.draw == 2 and part == (library.part or library.language):
            root = folder / library.name
            names = [path.relative_to(root).as_posix() for path in source_files(library, folder)]
            kept = [name for name in sorted(names, key=_file_order) if may_be_drawn(root, name)]
            pool += functions_of(library, folder, kept[:limit])
    return pool


def sample_second(folder: Path, seed: int, parts: Sequence[str] = tuple(SECOND_SIZES)) -> list[Candidate]:
    """The candidates of all or some parts of the second draw; the parts are drawn independently."""
    taken = {each.text_hash for name in SETS for each in read_labels(name) if not each.id.startswith(SECOND_PREFIX)}
    taken |= {each.text_hash for each in read_table(committed("measured"), Measured)}
    chosen: list[Candidate] = []
    first = 0
    for part, size in SECOND_SIZES.items():
        if part in parts:
            rng = random.Random(f"{seed} {part}")
            pool = [each for each in second_pool(part, folder) if each.text_hash not in taken]
            picked = choose(pool, size, rng, SECOND_SHARES)
            rng.shuffle(picked)
            for number, (located, its) in enumerate(picked, start=first):
                identifier, batch = f"{SECOND_PREFIX}{number:04d}", f"train2-{number // BATCH_SIZE:03d}"
                chosen.append(Candidate(identifier, "train", batch, located, its, 1.0))
        first += size
    return chosen


def _file_order(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8")).hexdigest()


def may_be_drawn(root: Path, name: str) -> bool:
    text = (root / name).read_bytes()
    return is_handwritten(name, text[:HEAD_BYTES].decode("utf-8", "replace")) and not _OF_FRAMEWORKS.search(text)


def write(candidates: Sequence[Candidate], out: Path) -> None:
    """candidates.tsv and batches/*.txt under `out`."""
    (out / "batches").mkdir(parents=True, exist_ok=True)
    texts: dict[str, list[str]] = defaultdict(list)
    with (out / "candidates.tsv").open("w", encoding="utf-8", newline="") as opened:
        table = csv.writer(opened, delimiter="\t", lineterminator="\n")
        table.writerow(COLUMNS)
        for each in candidates:
            place, function = each.located, each.located.function
            row: list[object] = [each.id, each.set, each.batch, place.library, place.version, place.file]
            row += [function.first_line, function.last_line, function.qualified_name, place.text_hash]
            row += [each.stratum, f"{each.weight:.4f}"]
            table.writerow(row)
            texts[each.batch].append(show(each.id, place))
    for batch, shown in texts.items():
        (out / "batches" / f"{batch}.txt").write_text("\n".join(shown), encoding="utf-8")


def _distinct(pool: Iterable[Located]) -> list[Located]:
    seen: set[str] = set()
    kept: list[Located] = []
    for located in pool:
        if located.text_hash not in seen:
            seen.add(located.text_hash)
            kept.append(located)
    return kept


def _worth(located: Located) -> float:
    """The sampling weight of a function within its library and stratum."""
    return readability(located) * max(1, hints(located)[1] - 1) ** 2


def readability(located: Located) -> float:
    function = located.function
    lines = function.last_line - function.first_line + 1
    if lines > _HUGE_LINES:
        return _HUGE_SHARE
    plain = lines < 3 and len(function.code) < 80
    return _TRIVIAL_SHARE if plain or (lines < 6 and _GETTER.search(function.name)) else 1.0


def capped(keyed: Sequence[Located], size: int) -> list[Located]:
    """The first `size` with few per file and class; the limits are relaxed twice, then the result may be shorter."""
    kept: dict[int, Located] = {}
    for widening in (1, 2, 4):
        per_file = Counter((located.library, located.file) for located in kept.values())
        per_class = Counter(map(_class, kept.values()))
        for position, located in enumerate(keyed):
            if len(kept) >= size:
                break
            file = (located.library, located.file)
            full = per_file[file] >= _PER_FILE * widening or per_class[_class(located)] >= _PER_CLASS * widening
            if position not in kept and not full:
                kept[position] = located
                per_file[file] += 1
                per_class[_class(located)] += 1
    return list(kept.values())


def _class(located: Located) -> tuple[str, str]:
    function = located.function
    return (located.library, f"{function.package} {function.class_name}" if function.class_name else located.file)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n[… cut, {len(text) - limit} characters more]"


def main(report: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.labels.sample", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="the sources that crystalperf.indexer.labels.fetch fetched")
    parser.add_argument("out", type=Path, help="the folder for candidates.tsv and batches/")
    parser.add_argument("--draw", type=int, choices=(1, 2), default=1)
    parser.add_argument("--part", action="append", choices=tuple(SECOND_SIZES), help="of draw 2: only this part")
    parser.add_argument("--seed", type=int, default=20210714)
    arguments = parser.parse_args()
    try:
        if arguments.draw == 2:
            candidates = sample_second(arguments.folder, arguments.seed, arguments.part or tuple(SECOND_SIZES))
        else:
            candidates = sample(arguments.folder, arguments.seed)
    except CrystalPerfError as error:
        print(error, file=sys.stderr)
        return 1
    write(candidates, arguments.out)
    counts = Counter((each.set, each.located.library, each.stratum) for each in candidates)
    for (set_name, library, its_stratum), count in sorted(counts.items()):
        report(f"{set_name}\t{library}\t{its_stratum}\t{count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
