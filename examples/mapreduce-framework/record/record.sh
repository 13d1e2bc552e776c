#!/bin/sh
# Record word counts on a cluster of Hadoop 3.4.1 in one process: sh record.sh FOLDER REDUCERS…
# Their histories are in FOLDER/staging/history.  Needs Java 17 and Maven, which gets 190 libraries.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/in" "$1/classes"
folder=$(cd "$1" && pwd)
shift
mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib"
python3 - "$folder/in" <<'END'
import random, sys
random.seed(1)
words = [f"w{int(random.paretovariate(1.1))}" for _ in range(400_000)]
for part in range(6):
    with open(f"{sys.argv[1]}/{part}.txt", "w") as file:
        file.writelines(" ".join(random.choices(words, k=12)) + "\n" for _ in range(60_000))
END
javac -cp "$folder/lib/*" -d "$folder/classes" "$here/Record.java"
jar cf "$folder/record.jar" -C "$folder/classes" .
cd "$folder"
exec java -Xmx900m --add-opens java.base/java.lang=ALL-UNNAMED -cp "$folder/record.jar:$folder/lib/*" Record "$folder" "$@"
