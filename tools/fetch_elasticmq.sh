#!/usr/bin/env bash
# Fetch ElasticMQ, an SQS-like server under the Apache License 2.0, and what it needs, by Maven. It needs
# Java to run, and no more than that; nothing is installed.
# Usage: fetch_elasticmq.sh [<folder>], by default .stores; afterwards <folder>/bin/elasticmq is the server, which takes options
# of the JVM. Quick when it is there.
set -euo pipefail

version=1.6.11
folder=${1:-.stores}
folder=$(mkdir -p "$folder/bin" && cd "$folder" && pwd)
root=$folder/elasticmq
server=$folder/bin/elasticmq
if [[ -f $root/elasticmq-server_2.13-$version.jar && -x $server ]]; then
    exit 0
fi

fail() {
    echo "error: cannot fetch ElasticMQ: $1" >&2
    exit 1
}

for program in java mvn; do
    command -v "$program" >/dev/null || fail "there is no $program on PATH"
done
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching ElasticMQ $version into $folder"
cat >"$work/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.antipode</groupId>
  <artifactId>elasticmq</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.elasticmq</groupId>
      <artifactId>elasticmq-server_2.13</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
EOF
(cd "$work" && mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime "-DoutputDirectory=$work/jars") || fail "Maven could not download it"
rm -rf "$root"
mv "$work/jars" "$root"
cat >"$server" <<'EOF'
#!/bin/sh
# ElasticMQ, with options of the JVM; the JVM it becomes has this process's number.
root=$(dirname "$(dirname "$(readlink -f "$0")")")/elasticmq
exec java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@" -cp "$root/*" org.elasticmq.server.Main
EOF
chmod 755 "$server"
